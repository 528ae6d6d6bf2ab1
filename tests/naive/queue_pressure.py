"""Queue pressure, slow and obvious: probabilities, a logarithm each, and a sorted list."""

from __future__ import annotations

import math
import statistics
from collections import deque
from typing import Any

__all__ = ["QueuePressureTwin", "spread"]


def spread(counts: list[int], least: float) -> tuple[float, float | None, float | None, float] | None:
    """Give corrected entropy, its share of the greatest, the mean slot and the items; None when unknown."""
    if not counts or min(counts) < 0 or sum(counts) < max(least, 1):
        return None
    total, slots = sum(counts), len(counts)
    plain = -sum(c / total * math.log2(c / total) for c in counts if c)
    held = sum(1 for c in counts if c)
    bits = min(plain + (held - 1) / (2 * total * math.log(2)), math.log2(slots))
    if slots == 1:
        return bits, None, None, float(total)
    return bits, bits / math.log2(slots), sum(i * c for i, c in enumerate(counts)) / total / (slots - 1), float(total)


class QueuePressureTwin:
    """One sample at a time."""

    def __init__(self, use: Any) -> None:
        self.settings = getattr(use, "settings", use)
        self.reset()

    def reset(self) -> None:
        """Forget the times to receive."""
        self.recent: deque[float] = deque(maxlen=int(self.settings["window"]))

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Take one sample."""
        found = spread(inputs.get("occupancy") or [], self.settings["least_items"]) or (None, None, None, None)
        out: dict[str, float | None] = dict(
            zip(("entropy_bits", "normalised_ratio", "fill_ratio", "items_count"), found, strict=True)
        )
        out["recv_median_ms"] = None
        if inputs.get("recv") is not None:
            self.recent.append(inputs["recv"])
            if len(self.recent) > self.settings["window"] / 2:
                out["recv_median_ms"] = statistics.median(self.recent)
        return out
