"""Detectors: what needs memory or array maths. A threshold on a number the host has is a rule.

A detector is one file: a kernel over plain memory, and a ``DetectorSpec`` that says what it reads,
what it writes and how much memory it needs. A new one adds its file and one line here.
"""

from __future__ import annotations

from stabilitykit.detectors.baseline import BASELINE
from stabilitykit.detectors.intent_drift import INTENT_DRIFT
from stabilitykit.detectors.itl_breaker import ITL_BREAKER
from stabilitykit.detectors.kl_shift import KL_SHIFT
from stabilitykit.detectors.kv_aging import KV_AGING
from stabilitykit.detectors.position_offset import POSITION_OFFSET
from stabilitykit.detectors.quantile import QUANTILE
from stabilitykit.signals import DetectorSpec

__all__ = ["DETECTORS"]

DETECTORS: dict[str, DetectorSpec] = {
    "baseline": BASELINE,
    "intent_drift": INTENT_DRIFT,
    "itl_breaker": ITL_BREAKER,
    "kl_shift": KL_SHIFT,
    "kv_aging": KV_AGING,
    "position_offset": POSITION_OFFSET,
    "quantile": QUANTILE,
}
"""Every detector type, by its word in YAML."""
