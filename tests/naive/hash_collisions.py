"""Hash collisions to a hundred digits: the closed form as it stands in the textbook."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

__all__ = ["HashCollisionsTwin", "moments", "naive_z"]


def moments(keys: float, buckets: float) -> tuple[float, float]:
    """Give mean and variance of the number of keys that find their bucket taken."""
    with localcontext() as context:
        context.prec = 100
        n, m = Decimal(keys), Decimal(buckets)
        empty = (1 - 1 / m) ** n if m > 1 else Decimal(0)
        both = (1 - 2 / m) ** n if m > 2 else Decimal(0)
        return float(n - m * (1 - empty)), float(m * empty + m * (m - 1) * both - (m * empty) ** 2)


def naive_z(keys: float, buckets: float, occupied: float) -> float:
    """Give the deviations above the mean; a deviation is at least a billionth of the keys."""
    mean, variance = moments(keys, buckets)
    return (keys - occupied - mean) / max(math.sqrt(max(variance, 0.0)), 1e-9 * keys)


class HashCollisionsTwin:
    """One window at a time; no memory."""

    def __init__(self, use: Any) -> None:
        self.limit = getattr(use, "settings", use)["z_limit"]

    def reset(self) -> None:
        """Nothing is kept."""

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Compare one window with chance."""
        keys, buckets, occupied = (inputs.get(name) for name in ("keys", "buckets", "occupied"))
        unknown: dict[str, float | None] = dict.fromkeys(("rate", "expected_rate", "z", "is_over"))
        if keys is None or buckets is None or occupied is None:
            return unknown
        if keys < 8 or buckets < 1 or not 1 <= occupied <= min(keys, buckets):
            return unknown
        z = naive_z(keys, buckets, occupied)
        return {
            "rate": 1 - occupied / keys,
            "expected_rate": moments(keys, buckets)[0] / keys,
            "z": z,
            "is_over": float(z > self.limit * (1 + 1e-9)),
        }
