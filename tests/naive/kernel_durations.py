"""Kernel durations, slow and obvious: a list, sorted each time."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["KernelDurationsTwin", "percentile"]


def percentile(values: list[float], percent: float) -> float:
    """Give the percentile between two ranks, linearly."""
    ordered = sorted(values)
    place = percent / 100 * (len(ordered) - 1)
    low, high = math.floor(place), math.ceil(place)
    return ordered[low] * (1 - (place - low)) + ordered[high] * (place - low)


class KernelDurationsTwin:
    """Keeps every duration."""

    def __init__(self, use: Any) -> None:
        self.settings = getattr(use, "settings", use)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.seen: list[float] = []

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Take one kernel."""
        value = inputs.get("input")
        if value is not None:
            self.seen.append(value)
        last = self.seen[-int(self.settings["window"]) :]
        out: dict[str, float | None] = {
            "mean_us": None,
            "p95_us": None,
            "tail_ratio": None,
            "n_count": float(len(last)),
            "tail_us": self.settings["tail"],
        }
        if value is not None and len(last) >= self.settings["least"]:
            out["mean_us"] = math.fsum(last) / len(last)
            out["p95_us"] = percentile(last, 95)
            out["tail_ratio"] = len([x for x in last if x > self.settings["tail"]]) / len(last)
        return out
