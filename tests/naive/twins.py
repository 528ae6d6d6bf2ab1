"""The naive twin of every detector, for the naive engine and for tests: type to factory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stabilitykit.rules.pack import DetectorUse
from tests.naive.attention_mask import NaiveAttentionMask
from tests.naive.baseline import BaselineTwin
from tests.naive.clock_sync import ClockSyncTwin
from tests.naive.decay_pattern import DecayPatternTwin
from tests.naive.degeneration import DegenerationTwin
from tests.naive.drift_probe import DriftProbeTwin
from tests.naive.excursion import ExcursionTwin
from tests.naive.forecast import ForecastTwin
from tests.naive.gpu_load import GpuLoadTwin
from tests.naive.hash_collisions import HashCollisionsTwin
from tests.naive.intent_churn import IntentChurnTwin
from tests.naive.intent_drift import IntentDriftTwin
from tests.naive.itl_breaker import ItlBreakerTwin
from tests.naive.kernel_durations import KernelDurationsTwin
from tests.naive.kl_shift import NaiveKlShift
from tests.naive.kv_aging import NaiveKvAging
from tests.naive.latch import LatchTwin
from tests.naive.latency_attribution import LatencyAttributionTwin
from tests.naive.launch_latency import LaunchLatencyTwin
from tests.naive.leak import LeakTwin
from tests.naive.memory_loss import MemoryLossTwin
from tests.naive.no_progress import NoProgressTwin
from tests.naive.position_ids import NaivePositionIds
from tests.naive.position_offset import NaivePositionOffset
from tests.naive.precrash import PrecrashTwin
from tests.naive.quantile import QuantileTwin
from tests.naive.queue_pressure import QueuePressureTwin
from tests.naive.snapshot_drift import NaiveSnapshotDrift
from tests.naive.throughput_cliff import ThroughputCliffTwin
from tests.naive.token_frames import NaiveTokenFrames
from tests.naive.transition_spike import TransitionSpikeTwin

__all__ = ["TWINS"]

TWINS: dict[str, Callable[[DetectorUse], Any]] = {
    "attention_mask": lambda use: NaiveAttentionMask(use.settings),
    "baseline": BaselineTwin,
    "clock_sync": ClockSyncTwin,
    "decay_pattern": DecayPatternTwin,
    "degeneration": DegenerationTwin,
    "drift_probe": DriftProbeTwin,
    "excursion": ExcursionTwin,
    "forecast": ForecastTwin,
    "gpu_load": GpuLoadTwin,
    "hash_collisions": HashCollisionsTwin,
    "intent_churn": IntentChurnTwin,
    "intent_drift": IntentDriftTwin,
    "itl_breaker": ItlBreakerTwin,
    "kernel_durations": KernelDurationsTwin,
    "kl_shift": lambda use: NaiveKlShift(use.settings),
    "kv_aging": lambda use: NaiveKvAging(use.settings),
    "latch": LatchTwin,
    "latency_attribution": LatencyAttributionTwin,
    "launch_latency": LaunchLatencyTwin,
    "leak": LeakTwin,
    "memory_loss": MemoryLossTwin,
    "no_progress": NoProgressTwin,
    "position_ids": lambda use: NaivePositionIds(use.settings),
    "position_offset": lambda use: NaivePositionOffset(use.settings),
    "precrash": PrecrashTwin,
    "quantile": QuantileTwin,
    "queue_pressure": QueuePressureTwin,
    "snapshot_drift": lambda use: NaiveSnapshotDrift(use.settings),
    "throughput_cliff": ThroughputCliffTwin,
    "token_frames": lambda use: NaiveTokenFrames(use.settings),
    "transition_spike": TransitionSpikeTwin,
}
