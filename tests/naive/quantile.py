"""The quantile detector, slow and obvious: a sorted list of cells."""

from __future__ import annotations

import math
from bisect import insort
from fractions import Fraction
from typing import Any

__all__ = ["CellList", "QuantileTwin"]


class CellList:
    """Values as sorted cells of a log-linear grid; a cell is (octave above the lowest, slice)."""

    def __init__(self, lowest: float, octaves: int, slices: int, limit: int) -> None:
        self.exponent = math.frexp(lowest)[1]
        self.octaves, self.slices, self.limit = octaves, slices, limit
        self.cells: list[tuple[int, int]] = []

    def add(self, value: float) -> None:
        """Put a value into its cell; at the limit keep every second one from the top."""
        mantissa, exponent = math.frexp(value)
        octave = exponent - self.exponent
        if value <= 0 or octave < 0:
            cell = (0, 0)
        elif octave >= self.octaves:
            cell = (self.octaves - 1, self.slices - 1)
        else:
            cell = (octave, math.floor((2 * mantissa - 1) * self.slices))
        insort(self.cells, cell)
        if len(self.cells) >= self.limit:
            self.cells = sorted(self.cells[::-1][1::2])

    def value(self, p: Fraction) -> float:
        """Give the harmonic mean of both ends of the cell that holds the nearest rank."""
        octave, k = self.cells[math.ceil(p * len(self.cells)) - 1]
        low, high = self.slices + k, self.slices + k + 1
        return float(Fraction(2 * low * high, low + high)) / self.slices * 2.0 ** (self.exponent - 1 + octave)

    def estimate(self, p: Fraction) -> float:
        """Give the nearest rank's place in its cell, evenly filled, within 1 / (2 slices + 1) of either end."""
        at = math.ceil(p * len(self.cells)) - 1
        octave, k = cell = self.cells[at]
        held = [i for i, one in enumerate(self.cells) if one == cell]
        b = octave * self.slices + k
        share = b + 1.0 - (held[-1] - at + 0.5) / len(held) - b
        width = 2.0 ** (self.exponent - 1 + octave) / self.slices
        low, worst = width * (self.slices + k), 1.0 / (2.0 * self.slices + 1.0)
        return min(max(low + width * share, (low + width) * (1.0 - worst)), low * (1.0 + worst))


class QuantileTwin:
    """A ``CellList`` read before each value."""

    def __init__(self, use: Any, limit: int = 1 << 20) -> None:
        self.lowest, self.limit = getattr(use, "settings", use)["lowest"], limit
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.past = CellList(self.lowest, 24, 32, self.limit)
        self.too_high = 0

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Read the quantiles of the earlier values, then add this one."""
        n = len(self.past.cells)
        out: dict[str, float | None] = {}
        for name, permille, least in (("p50", 500, 20), ("p90", 900, 20), ("p99", 990, 100), ("p999", 999, 1000)):
            p = Fraction(permille, 1000)
            is_known = n >= least and math.ceil(p * n) <= n - self.too_high
            out[name] = self.past.estimate(p) if is_known else None
        out["is_warm"] = float(n >= 1000)
        value = inputs.get("input")
        if value is not None:
            if math.frexp(value)[1] - self.past.exponent >= 24 and value > 0:
                self.too_high += 1
            self.past.add(value)
            if len(self.past.cells) <= n:
                self.too_high //= 2
        return out
