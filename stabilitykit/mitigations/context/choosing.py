"""Which units stay: in the order of a score, or so that together they hold the most; never more than there is room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["by_score", "cover", "fill"]


def by_score(scores: NDArray[np.float64]) -> list[int]:
    """Give the places of the highest scores first; of equal ones the later first."""
    return (len(scores) - 1 - np.argsort(-scores[::-1], kind="stable")).tolist()  # type: ignore[no-any-return]


def fill(order: Iterable[int], cost: Sequence[int], room: int, kept: set[int], most: int | None = None) -> int:
    """Add units in their order as long as each fits, ``most`` of them; give the room that is left."""
    for k in order:
        if most is not None and most <= 0:
            break
        if k not in kept and cost[k] <= room:
            kept.add(k)
            room -= cost[k]
            most = None if most is None else most - 1
    return room


def cover(
    holds: Sequence[Sequence[int]], worth: NDArray[np.float64], cost: Sequence[int], room: int, kept: set[int]
) -> int:
    """Add the unit with the most worth not yet held, over the root of its tokens, until nothing fits.

    Over the root: over the tokens themselves many small units crowd out the long results that hold most (measured by
    ``benchmarks/subjects/context.py``).

    Parameters
    ----------
    holds
        The values of each unit, as places in ``worth``.
    """
    units = len(holds)
    held = np.zeros((units, len(worth)), np.float64)
    for k, values in enumerate(holds):
        held[k, list(values)] = 1.0
    left = worth.copy()
    for k in kept:
        left[held[k] > 0] = 0.0
    prices = np.asarray(cost, np.float64)
    root = np.sqrt(np.maximum(prices, 1.0))
    is_out = np.ones(units, bool)
    is_out[list(kept)] = False
    while True:
        gain = np.where(is_out & (prices <= room), (held @ left + 1e-9) / root, -1.0)
        best = units - 1 - int(np.argmax(gain[::-1])) if units else -1
        if best < 0 or gain[best] < 0:
            return room
        kept.add(best)
        is_out[best] = False
        room -= cost[best]
        left[held[best] > 0] = 0.0
