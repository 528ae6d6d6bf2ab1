"""The forecast, slow and obvious: a list of values and the median of all slopes."""

from __future__ import annotations

from itertools import combinations
from statistics import median
from typing import Any

__all__ = ["ForecastTwin"]


class ForecastTwin:
    """Keeps (value, time) of the window."""

    def __init__(self, use: Any) -> None:
        self.settings = getattr(use, "settings", use)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.seen: list[tuple[float, float | None]] = []

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Extrapolate."""
        window, full, soon = (self.settings[k] for k in ("window", "full", "soon"))
        value, left, slope, each = inputs.get("input"), None, None, None
        if value is None or abs(value) > 1e150:
            return dict.fromkeys(("turns_left", "slope_per_turn", "seconds_left", "is_soon"))
        if self.seen and value < 0.75 * self.seen[-1][0]:
            self.seen = []
        self.seen = [*self.seen, (value, inputs.get("time"))][-window:]
        warm = 2 * len(self.seen) >= window
        if value >= full:
            left = 0.0
        if warm:
            places = range(len(self.seen))
            slope = median((self.seen[b][0] - self.seen[a][0]) / (b - a) for a, b in combinations(places, 2))
            if slope > 0:
                left = max(full - value, 0.0) / slope
            first, last = self.seen[0][1], self.seen[-1][1]
            if first is not None and last is not None and last > first:
                each = (last - first) / (len(self.seen) - 1)
        is_soon = True if left is not None and left <= soon else False if warm else None
        return {
            "turns_left": left if left is not None and left <= 1e150 else None,
            "slope_per_turn": slope,
            "seconds_left": left * each if left is not None and each is not None and left * each <= 1e150 else None,
            "is_soon": None if is_soon is None else float(is_soon),
        }
