"""The load score of a GPU: memory, utilisation and temperature in one number."""

from __future__ import annotations

import math

from stabilitykit.kernels._registry import kernel

__all__ = ["load_score", "temperature_weight"]


@kernel
def temperature_weight(celsius: float) -> float:
    """Give the weight of a temperature: 0.8 up to 70 C, 0.12 more a degree, 1.5 at most."""
    return min(1.5, 0.8 + 0.12 * max(celsius - 70.0, 0.0))


@kernel
def load_score(memory: float, sm: float, celsius: float) -> float:
    """Give the score of memory and SM use in percent and a temperature; an unknown one leaves its weight to the rest.

    All three unknown is unknown. A temperature below zero counts as zero.
    """
    score, weight = 0.0, 0.0
    if not math.isnan(memory):
        score += 0.4 * memory
        weight += 0.4
    if not math.isnan(sm):
        score += 0.35 * sm
        weight += 0.35
    if not math.isnan(celsius):
        score += 0.25 * max(celsius, 0.0) * temperature_weight(celsius)
        weight += 0.25
    if weight <= 0.0:
        return math.nan
    return score if weight > 0.99 else score / weight
