"""Detectors: what needs memory or array maths. A threshold on a number the host has is a rule.

A detector is one file: a kernel over plain memory, and a ``DetectorSpec`` that says what it reads,
what it writes and how much memory it needs. A new one adds its file and one line here.
"""

from __future__ import annotations

from stabilitykit.detectors.baseline import BASELINE
from stabilitykit.detectors.decay_pattern import DECAY_PATTERN
from stabilitykit.detectors.degeneration import DEGENERATION
from stabilitykit.detectors.forecast import FORECAST
from stabilitykit.detectors.hash_collisions import HASH_COLLISIONS
from stabilitykit.detectors.intent_drift import INTENT_DRIFT
from stabilitykit.detectors.itl_breaker import ITL_BREAKER
from stabilitykit.detectors.kl_shift import KL_SHIFT
from stabilitykit.detectors.kv_aging import KV_AGING
from stabilitykit.detectors.leak import LEAK
from stabilitykit.detectors.memory_loss import MEMORY_LOSS
from stabilitykit.detectors.no_progress import NO_PROGRESS
from stabilitykit.detectors.position_offset import POSITION_OFFSET
from stabilitykit.detectors.precrash import PRECRASH
from stabilitykit.detectors.quantile import QUANTILE
from stabilitykit.detectors.queue_pressure import QUEUE_PRESSURE
from stabilitykit.detectors.throughput_cliff import THROUGHPUT_CLIFF
from stabilitykit.detectors.transition_spike import TRANSITION_SPIKE
from stabilitykit.signals import DetectorSpec

__all__ = ["DETECTORS"]

DETECTORS: dict[str, DetectorSpec] = {
    "baseline": BASELINE,
    "decay_pattern": DECAY_PATTERN,
    "degeneration": DEGENERATION,
    "forecast": FORECAST,
    "hash_collisions": HASH_COLLISIONS,
    "intent_drift": INTENT_DRIFT,
    "itl_breaker": ITL_BREAKER,
    "kl_shift": KL_SHIFT,
    "kv_aging": KV_AGING,
    "leak": LEAK,
    "memory_loss": MEMORY_LOSS,
    "no_progress": NO_PROGRESS,
    "position_offset": POSITION_OFFSET,
    "precrash": PRECRASH,
    "quantile": QUANTILE,
    "queue_pressure": QUEUE_PRESSURE,
    "throughput_cliff": THROUGHPUT_CLIFF,
    "transition_spike": TRANSITION_SPIKE,
}
"""Every detector type, by its word in YAML."""
