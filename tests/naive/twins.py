"""The naive twin of every detector, for the naive engine and for tests: type to factory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stabilitykit.rules.pack import DetectorUse
from tests.naive.baseline import BaselineTwin
from tests.naive.decay_pattern import DecayPatternTwin
from tests.naive.degeneration import DegenerationTwin
from tests.naive.forecast import ForecastTwin
from tests.naive.hash_collisions import HashCollisionsTwin
from tests.naive.intent_drift import IntentDriftTwin
from tests.naive.itl_breaker import ItlBreakerTwin
from tests.naive.kl_shift import NaiveKlShift
from tests.naive.kv_aging import NaiveKvAging
from tests.naive.leak import LeakTwin
from tests.naive.memory_loss import MemoryLossTwin
from tests.naive.no_progress import NoProgressTwin
from tests.naive.position_offset import NaivePositionOffset
from tests.naive.precrash import PrecrashTwin
from tests.naive.quantile import QuantileTwin
from tests.naive.queue_pressure import QueuePressureTwin
from tests.naive.throughput_cliff import ThroughputCliffTwin
from tests.naive.transition_spike import TransitionSpikeTwin

__all__ = ["TWINS"]

TWINS: dict[str, Callable[[DetectorUse], Any]] = {
    "baseline": BaselineTwin,
    "decay_pattern": DecayPatternTwin,
    "degeneration": DegenerationTwin,
    "forecast": ForecastTwin,
    "hash_collisions": HashCollisionsTwin,
    "intent_drift": IntentDriftTwin,
    "itl_breaker": ItlBreakerTwin,
    "kl_shift": lambda use: NaiveKlShift(use.settings),
    "kv_aging": lambda use: NaiveKvAging(use.settings),
    "leak": LeakTwin,
    "memory_loss": MemoryLossTwin,
    "no_progress": NoProgressTwin,
    "position_offset": lambda use: NaivePositionOffset(use.settings),
    "precrash": PrecrashTwin,
    "quantile": QuantileTwin,
    "queue_pressure": QueuePressureTwin,
    "throughput_cliff": ThroughputCliffTwin,
    "transition_spike": TransitionSpikeTwin,
}
