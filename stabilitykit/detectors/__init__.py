"""Detectors: what needs memory or array maths. A threshold on a number the host has is a rule.

A detector is one file: a kernel over plain memory, and a ``DetectorSpec`` that says what it reads,
what it writes and how much memory it needs. A new one adds its file and one line here.
"""

from __future__ import annotations

from stabilitykit.detectors.attention_mask import ATTENTION_MASK
from stabilitykit.detectors.baseline import BASELINE
from stabilitykit.detectors.clock_sync import CLOCK_SYNC
from stabilitykit.detectors.decay_pattern import DECAY_PATTERN
from stabilitykit.detectors.degeneration import DEGENERATION
from stabilitykit.detectors.drift_probe import DRIFT_PROBE
from stabilitykit.detectors.excursion import EXCURSION
from stabilitykit.detectors.forecast import FORECAST
from stabilitykit.detectors.gpu_load import GPU_LOAD
from stabilitykit.detectors.hash_collisions import HASH_COLLISIONS
from stabilitykit.detectors.intent_churn import INTENT_CHURN
from stabilitykit.detectors.intent_drift import INTENT_DRIFT
from stabilitykit.detectors.itl_breaker import ITL_BREAKER
from stabilitykit.detectors.kernel_durations import KERNEL_DURATIONS
from stabilitykit.detectors.kl_shift import KL_SHIFT
from stabilitykit.detectors.kv_aging import KV_AGING
from stabilitykit.detectors.latch import LATCH
from stabilitykit.detectors.latency_attribution import LATENCY_ATTRIBUTION
from stabilitykit.detectors.launch_latency import LAUNCH_LATENCY
from stabilitykit.detectors.leak import LEAK
from stabilitykit.detectors.memory_loss import MEMORY_LOSS
from stabilitykit.detectors.no_progress import NO_PROGRESS
from stabilitykit.detectors.position_ids import POSITION_IDS
from stabilitykit.detectors.position_offset import POSITION_OFFSET
from stabilitykit.detectors.precrash import PRECRASH
from stabilitykit.detectors.quantile import QUANTILE
from stabilitykit.detectors.queue_pressure import QUEUE_PRESSURE
from stabilitykit.detectors.snapshot_drift import SNAPSHOT_DRIFT
from stabilitykit.detectors.throughput_cliff import THROUGHPUT_CLIFF
from stabilitykit.detectors.token_frames import TOKEN_FRAMES
from stabilitykit.detectors.transition_spike import TRANSITION_SPIKE
from stabilitykit.signals import DetectorSpec

__all__ = ["DETECTORS"]

DETECTORS: dict[str, DetectorSpec] = {
    "attention_mask": ATTENTION_MASK,
    "baseline": BASELINE,
    "clock_sync": CLOCK_SYNC,
    "decay_pattern": DECAY_PATTERN,
    "degeneration": DEGENERATION,
    "drift_probe": DRIFT_PROBE,
    "excursion": EXCURSION,
    "forecast": FORECAST,
    "gpu_load": GPU_LOAD,
    "hash_collisions": HASH_COLLISIONS,
    "intent_churn": INTENT_CHURN,
    "intent_drift": INTENT_DRIFT,
    "itl_breaker": ITL_BREAKER,
    "kernel_durations": KERNEL_DURATIONS,
    "kl_shift": KL_SHIFT,
    "kv_aging": KV_AGING,
    "latch": LATCH,
    "latency_attribution": LATENCY_ATTRIBUTION,
    "launch_latency": LAUNCH_LATENCY,
    "leak": LEAK,
    "memory_loss": MEMORY_LOSS,
    "no_progress": NO_PROGRESS,
    "position_ids": POSITION_IDS,
    "position_offset": POSITION_OFFSET,
    "precrash": PRECRASH,
    "quantile": QUANTILE,
    "queue_pressure": QUEUE_PRESSURE,
    "snapshot_drift": SNAPSHOT_DRIFT,
    "throughput_cliff": THROUGHPUT_CLIFF,
    "token_frames": TOKEN_FRAMES,
    "transition_spike": TRANSITION_SPIKE,
}
"""Every detector type, by its word in YAML."""
