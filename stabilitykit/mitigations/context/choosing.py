"""Which units stay: in the order of a score, or so that together they hold the most; never more than there is room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heapreplace

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

    Over the root: over the tokens themselves many small units crowd out the long results that hold most.

    Parameters
    ----------
    holds
        The values of each unit, as places in ``worth``.
    """
    left = worth.tolist()
    root = np.sqrt(np.maximum(np.asarray(cost, np.float64), 1.0)).tolist()

    def gain(k: int) -> float:
        return float((sum(left[v] for v in holds[k]) + 1e-9) / root[k])

    for k in kept:
        for v in holds[k]:
            left[v] = 0.0
    # What a unit adds only falls while others are taken: the first of the queue whose figure still holds is the best.
    queue = [(-gain(k), -k) for k in range(len(holds)) if k not in kept and cost[k] <= room]
    heapify(queue)
    while queue:
        known, k = -queue[0][0], -queue[0][1]
        if cost[k] > room:
            heappop(queue)
        elif (now := gain(k)) < known:
            heapreplace(queue, (-now, -k))
        else:
            heappop(queue)
            kept.add(k)
            room -= cost[k]
            for v in holds[k]:
                left[v] = 0.0
    return room
