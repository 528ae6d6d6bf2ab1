"""Which units stay: in the order of a score, or so that together they hold the most; never more than there is room."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from heapq import heapify, heappop, heapreplace
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Part", "by_score", "cover", "fill"]

POWER = 0.5
"""Of the tokens that a gain is divided by. With 1 many small units crowd out the long results that hold most."""
_ANY = 1e-9
"""What a token is worth by itself, so that room is not left empty."""


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


class Part(NamedTuple):
    """What may stay of a unit: its part 0 first, and another only with its parent.

    Parameters
    ----------
    parent
        A part before it, -1: none.
    cost
        Its tokens, above 0.
    holds
        Its values, as numbers.
    """

    parent: int
    cost: float
    holds: Sequence[int]


class _Bundle(NamedTuple):
    rate: float
    parts: list[int]
    cost: float


def _bundle(parts: Sequence[Part], taken: Collection[int], left: Sequence[float], room: float) -> _Bundle | None:
    """Give what to take next of a unit: parts in the order of their worth a token, as many as make the most of it."""
    free = [k for k in range(len(parts)) if k not in taken]
    worth = {k: sum(map(left.__getitem__, parts[k].holds)) / parts[k].cost for k in free}
    inside, held = set(taken), set[int]()
    chosen: list[int] = []
    gain, cost = 0.0, 0.0
    best, most, price_of_best = 0.0, 0, 0.0
    for k in sorted(free, key=lambda k: (-worth[k], k)):
        path: list[int] = []
        at = k
        while at >= 0 and at not in inside:
            path.append(at)
            at = parts[at].parent
        price = sum(parts[j].cost for j in path)
        if not path or cost + price > room:
            continue
        for j in path:
            for v in parts[j].holds:
                if v not in held:
                    held.add(v)
                    gain += left[v]
        gain += _ANY * price
        cost += price
        inside.update(path)
        chosen += reversed(path)
        if gain / cost**POWER > best:
            best, most, price_of_best = gain / cost**POWER, len(chosen), cost
    return _Bundle(best, chosen[:most], price_of_best) if most else None


def cover(
    units: Sequence[Sequence[Part]], worth: NDArray[np.float64], room: float, taken: Sequence[set[int]]
) -> list[tuple[int, int]]:
    """Take parts of units so that together they hold the most; give them in the order they were taken.

    Next comes what adds the most worth not yet held for its tokens (to the power ``POWER``).

    Parameters
    ----------
    worth
        Of each value, counted once however often it is held.
    taken
        The parts of each unit that stay already; what is taken is added.
    """
    left = worth.tolist()
    where: dict[int, list[int]] = {}
    for u, parts in enumerate(units):
        for v in {v for part in parts for v in part.holds}:
            where.setdefault(v, []).append(u)
        for v in {v for k in taken[u] for v in parts[k].holds}:
            left[v] = 0.0
    found: list[tuple[int, int]] = []
    known: dict[int, _Bundle] = {}  # still true: none of its unit's values was taken since
    queue = [(-inf, -u) for u, parts in enumerate(units) if len(taken[u]) < len(parts)]
    heapify(queue)
    while queue:
        u = -queue[0][1]
        bundle = known.get(u)
        if bundle is None or bundle.cost > room:
            bundle = _bundle(units[u], taken[u], left, room)
            if bundle is None:
                heappop(queue)
            else:
                known[u] = bundle
                heapreplace(queue, (-bundle.rate, -u))
            continue
        taken[u].update(bundle.parts)
        found += [(u, k) for k in bundle.parts]
        room -= bundle.cost
        del known[u]
        heapreplace(queue, (-inf, -u))
        for v in {v for k in bundle.parts for v in units[u][k].holds if left[v]}:
            left[v] = 0.0
            for other in where[v]:
                known.pop(other, None)
    return found
