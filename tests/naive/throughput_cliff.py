"""The throughput cliff, slow and obvious: a sorted list of bins."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["ThroughputCliffTwin"]


def middle(value: float) -> float:
    """Give the value that stands for a number's bin: 16 equal slices an octave, from 1/64 to 1,024."""
    value = min(max(value, 2.0**-6), math.nextafter(1024.0, 0.0))
    octave = 2.0 ** (math.frexp(value)[1] - 1)
    low = 16 + math.floor((value / octave - 1) * 16)
    return octave / 16 * (2 * low * (low + 1) / (2 * low + 1))


class ThroughputCliffTwin:
    """The middles of the bins of all learned rates, the oldest forgotten only by a restart."""

    def __init__(self, use: Any) -> None:
        self.settings = getattr(use, "settings", use)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.seen: list[float] = []
        self.frozen = 0

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Compare with the lower median, then learn what is no cliff."""
        value, base = inputs.get("input"), None
        if len(self.seen) >= self.settings["warmup"]:
            base = sorted(self.seen)[(len(self.seen) + 1) // 2 - 1]
            if base < 2.0**-6 * 17 / 16:
                base = None
        ratio = None if value is None or base is None else value / base
        is_cliff = ratio is not None and ratio < self.settings["fraction"]
        if value is not None:
            self.frozen = self.frozen + 1 if is_cliff else 0
            if self.frozen >= self.settings["max_freeze"]:
                self.seen, self.frozen = [], 0
            if self.frozen == 0:
                self.seen.append(middle(value))
        return {"ratio": ratio, "is_cliff": None if ratio is None else float(is_cliff), "baseline": base}
