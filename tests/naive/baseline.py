"""The baseline detector, slow and obvious."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["BaselineTwin"]


class BaselineTwin:
    """Exponentially weighted mean and variance as two plain numbers."""

    def __init__(self, use: Any) -> None:
        self.settings = getattr(use, "settings", use)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.n, self.mean, self.variance = 0, 0.0, 0.0

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Compare with the earlier values, then learn."""
        value = inputs.get("input")
        if value is not None and abs(value) > 1e150:
            value = None
        out: dict[str, float | None] = {"mean": None, "deviation": None, "ratio": None}
        if self.n >= self.settings["warmup"]:
            out["mean"], out["deviation"] = self.mean, math.sqrt(self.variance)
            if value is not None and self.mean != 0:
                ratio = value / self.mean
                out["ratio"] = ratio if abs(ratio) <= 1e150 else None
        if value is not None:
            self.n += 1
            weight = max(self.settings["alpha"], 1 / self.n)
            off = value - self.mean
            self.mean = self.mean + weight * off
            self.variance = (1 - weight) * (self.variance + weight * off * off)
        return out
