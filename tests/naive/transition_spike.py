"""Transition spikes, slow and obvious: all past values, sorted each time, and a list of the last hundred verdicts."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from tests.naive.quantile import CellList

__all__ = ["SpikePast", "TransitionSpikeTwin"]


class SpikePast:
    """The past of one kind of transition."""

    def __init__(self, floor: float, lowest: float, limit: int = 1 << 20) -> None:
        self.floor, self.cells, self.limit = floor, CellList(lowest, 24, 32, limit), limit
        self.too_high, self.verdicts = 0, [False] * 100

    def bound(self) -> float | None:
        """Give the upper end of the cell that holds p99.9, at least the floor."""
        n = len(self.cells.cells)
        if n < 1000:
            return self.floor
        rank = math.ceil(Fraction(999, 1000) * n)
        if rank > n - self.too_high:
            return None
        return max(self.floor, self.cells.value(Fraction(999, 1000)) * (1 + 1 / 64))

    def take(self, value: float) -> tuple[bool, float | None]:
        """Judge a value by the past, then make it part of it."""
        bound = self.bound()
        is_spike = bound is not None and value > bound
        self.verdicts = [*self.verdicts[1:], is_spike]
        before = len(self.cells.cells)
        if value > 0 and math.frexp(value)[1] - self.cells.exponent >= 24:
            self.too_high += 1
        self.cells.add(value)
        if len(self.cells.cells) <= before:
            self.too_high //= 2
        return is_spike, bound


class TransitionSpikeTwin:
    """Every output from a ``SpikePast``."""

    def __init__(self, use: Any, limit: int = 1 << 20) -> None:
        self.settings, self.limit = getattr(use, "settings", use), limit
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.past = SpikePast(self.settings["floor"], self.settings["lowest"], self.limit)

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Judge one transition."""
        value = inputs.get("input")
        if value is None:
            return {"is_spike": None, "threshold_us": self.past.bound(), "burst_count": None, "over_ratio": None}
        is_spike, bound = self.past.take(value)
        return {
            "is_spike": None if bound is None else float(is_spike),
            "threshold_us": bound,
            "burst_count": float(sum(self.past.verdicts)),
            "over_ratio": None if bound is None else value / bound,
        }
