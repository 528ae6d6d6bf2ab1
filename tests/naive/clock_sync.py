"""Two clocks, slow and obvious: whole readings in a list, a line by exact fractions."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction
from typing import Any

__all__ = ["ClockSyncTwin", "line_through"]

Point = tuple[int, int]


def line_through(points: list[Point], bound: Fraction) -> tuple[Fraction, Fraction, bool] | None:
    """Give slope, height at 0 and whether the slope was over its bound; None when no two abscissas differ."""
    mean_x, mean_y = (Fraction(sum(p[k] for p in points), len(points)) for k in (0, 1))
    width = sum((x - mean_x) ** 2 for x, _ in points)
    if not width:
        return None
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / width
    kept = max(-bound, min(bound, slope))
    return kept, mean_y - kept * mean_x, kept != slope


def outliers_left_out(
    points: list[Point], bound: Fraction
) -> tuple[list[Point], tuple[Fraction, Fraction, bool]] | None:
    """Fit twice: the second time without what is over five deviations from the median residual."""
    first = line_through(points, bound)
    if first is None:
        return None
    rest = [y - first[1] - first[0] * x for x, y in points]
    middle = statistics.median(rest)
    wide = max(5 * statistics.median([abs(r - middle) for r in rest]), Fraction(1))
    near = [p for p, r in zip(points, rest, strict=True) if abs(r - middle) <= wide]
    again = line_through(near, bound)
    return None if again is None else (near, again)


class ClockSyncTwin:
    """Keeps readings as they came: (local, remote)."""

    def __init__(self, use: Any) -> None:
        self.settings = getattr(use, "settings", use)
        self.bound = Fraction(1e-6 * float(self.settings["bound"]))
        self.least = min(self.settings["least"], self.settings["window"])
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.held: list[Point] = []
        self.trips: list[int] = []
        self.strays: list[Fraction] = []

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Take all readings of a sample."""
        out: dict[str, float | None] = dict.fromkeys(("offset_ns", "skew_ppm", "residual_ns", "n_count", "is_bounded"))
        numbers, columns = [int(v) for v in inputs.get("samples") or []], self.settings["columns"]
        if len(numbers) < columns:
            return out
        now = None
        for k in range(0, len(numbers) - columns + 1, columns):
            if self._take(*numbers[k : k + columns]):
                now = numbers[k]
        out["n_count"] = float(len(self.held))
        found = outliers_left_out(self._points(self.held[-1]), self.bound) if len(self.held) >= self.least else None
        if found is not None:
            near, (slope, height, is_bounded) = found
            squares = [(y - height - slope * x) ** 2 for x, y in near]
            local, remote = self.held[-1]
            since = 0 if now is None else max(now - local, 0)
            out["offset_ns"] = float(remote - local) + float(height + slope * since)
            out["skew_ppm"] = float(slope * 1_000_000)
            out["residual_ns"] = math.sqrt(sum(squares) / len(near))
            out["n_count"] = float(len(near))
            out["is_bounded"] = float(is_bounded)
        return out

    def _points(self, origin: Point) -> list[Point]:
        """Give the held readings as (time, offset) seen from one of them."""
        local, remote = origin
        return [(a - local, (b - a) - (remote - local)) for a, b in self.held]

    def _take(self, local: int, remote: int, trip: int = 0) -> bool:
        """Take a reading in; say whether it was one."""
        if max(abs(local), abs(remote)) >= 2**61 or trip < 0:
            return False
        if self.settings["columns"] == 3:
            self.trips = [*self.trips, trip][-self.settings["window"] :]
            if trip > 1.5 * min(self.trips):
                return True
        if self.held:
            before = self.held[-1]
            if local == before[0]:
                return True
            if local < before[0] or remote < before[1] or max(local - before[0], remote - before[1]) > 2**53:
                self.held, self.strays = [], []
            elif self._is_step((local, remote)):
                self.held, self.strays = self.held[-2:], []
        self.held = [*self.held, (local, remote)][-self.settings["window"] :]
        return True

    def _is_step(self, reading: Point) -> bool:
        points = self._points(reading)
        found = outliers_left_out(points, self.bound) if len(points) >= self.least else None
        if found is None:
            self.strays = []
            return False
        slope, height, _ = found[1]
        rest = [y - height - slope * x for x, y in points]
        middle = statistics.median(rest)
        wide = max(5 * statistics.median([abs(r - middle) for r in rest]), Fraction(1))
        away = -height - middle
        if abs(away) <= 2 * wide:
            self.strays = []
        elif self.strays and Fraction(1, 2) <= away / self.strays[0] <= 2:
            self.strays.append(away)
        else:
            self.strays = [away]
        return len(self.strays) >= 3
