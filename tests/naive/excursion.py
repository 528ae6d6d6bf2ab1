"""Excursions, slow and obvious: two sorted lists of everything that was not given up."""

from __future__ import annotations

from bisect import insort
from typing import Any

__all__ = ["ExcursionTwin"]


class Past:
    """One end of a past: the greatest 32 values, and of how many."""

    def __init__(self) -> None:
        self.kept: list[float] = []

    def bound(self, n: int) -> float:
        """Give p99.9 of n values, or the least kept."""
        return self.kept[::-1][min(n // 1000, len(self.kept) - 1)]

    def add(self, value: float, n: int) -> None:
        """Keep it if it is one of the greatest; all of the first 32 are."""
        if n <= 32 or value > self.kept[0]:
            insort(self.kept, value)
            self.kept = self.kept[-32:]

    def thin(self) -> None:
        """Keep the second, fourth, ... from the top."""
        self.kept = self.kept[::-1][1::2][::-1]


class ExcursionTwin:
    """Level and value against both ends of their pasts."""

    def __init__(self, use: Any, limit: int = 31_000) -> None:
        self.s, self.limit = getattr(use, "settings", use), limit
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.n, self.level = 0, 0.0
        self.pasts = {(name, sign): Past() for name in ("level", "value") for sign in (1, -1)}

    def range(self, name: str) -> tuple[float, float]:
        """Give p0.1 and p99.9."""
        return -self.pasts[name, -1].bound(self.n), self.pasts[name, 1].bound(self.n)

    def is_outside(self, name: str, value: float, margin: float) -> bool:
        """Tell whether a value is outside by more than the margin and a rounding."""
        low, high = self.range(name)
        room = (high - low) * margin + (abs(high) + abs(low)) * 1e-9
        return value > high + room or value < low - room

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Compare, then count."""
        value = inputs.get("input")
        if value is not None and abs(value) > 1e150:
            value = None
        out: dict[str, float | None] = dict.fromkeys(("is_out", "level", "high", "low", "value_high", "value_low"))
        if value is not None:
            self.level = value if self.n == 0 else self.level + self.s["alpha"] * (value - self.level)
            out["level"] = self.level
        if self.n >= self.s["warmup"]:
            out["low"], out["high"] = self.range("level")
            out["value_low"], out["value_high"] = self.range("value")
            if value is not None:
                left = self.is_outside("level", self.level, self.s["margin"])
                out["is_out"] = float(left or self.is_outside("value", value, self.s["jump"]))
        if value is not None:
            self._count(value)
        return out

    def _count(self, value: float) -> None:
        self.n += 1
        for (name, sign), past in self.pasts.items():
            past.add(sign * (self.level if name == "level" else value), self.n)
        if self.n >= self.limit:
            self.n //= 2
            for past in self.pasts.values():
                past.thin()
