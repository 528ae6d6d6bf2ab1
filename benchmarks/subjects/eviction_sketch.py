"""The sketch that the survival policy is measured against, and the source's hybrid as it is written.

Both know a block for ever: their memory grows with the trace. Blocks are numbers from 0 on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

AGES, CLASSES, EVERY, PRIOR = 48, 12, 50, 50.0
LOW = 2.0 ** (np.arange(AGES + 1) / 3.0) - 1.0


@njit
def is_less(h: Any, keys: Any, ties: Any, a: int, b: int) -> bool:
    if keys[h[a]] != keys[h[b]]:
        return keys[h[a]] < keys[h[b]]
    return ties[h[a]] < ties[h[b]]


@njit
def sink(h: Any, n: int, keys: Any, ties: Any, at: int) -> None:
    while 2 * at + 1 < n:
        child = 2 * at + 1
        if child + 1 < n and is_less(h, keys, ties, child + 1, child):
            child += 1
        if not is_less(h, keys, ties, child, at):
            break
        h[at], h[child] = h[child], h[at]
        at = child


@njit
def rise(h: Any, keys: Any, ties: Any, at: int) -> None:
    while at > 0 and is_less(h, keys, ties, at, (at - 1) >> 1):
        up = (at - 1) >> 1
        h[at], h[up] = h[up], h[at]
        at = up


@njit
def age_of(age: float) -> int:
    return min(int(3.0 * math.log2(age + 1.0)), AGES - 1)


@njit
def class_of(uses: int, partial: int) -> int:
    group = uses - 1 if uses <= 3 else 3 if uses < 8 else 4 if uses < 32 else 5
    return group * 2 + partial


@njit
def weigh(ended: Any, risked: Any, index: Any) -> None:
    """The index of every class and age: hazards with back-off to all classes, then the best horizon."""
    hazard = np.empty(AGES)
    for c in range(CLASSES):
        for a in range(AGES):
            pooled = (ended[CLASSES, a] + 0.05) / (risked[CLASSES, a] + 1.0)
            hazard[a] = min((ended[c, a] + PRIOR * pooled) / (risked[c, a] + PRIOR), 0.999)
        for a in range(AGES):
            stays, reuse, time, best = 1.0, 0.0, 0.0, 0.0
            for s in range(a, AGES - 1):
                width = (LOW[s + 1] - LOW[s]) * (0.5 if s == a else 1.0)
                time += stays * width * (1.0 - 0.5 * hazard[s])
                reuse += stays * hazard[s]
                stays *= 1.0 - hazard[s]
                best = max(best, reuse / time)
            index[c, a] = best


@njit
def count_risks(now: float, n: int, begun: Any, group: Any, end: Any, seen: Any, risked: Any) -> None:
    for k in range(AGES):
        p = seen[k]
        while p < n and begun[p] <= now - LOW[k]:
            if end[p] > begun[p] + LOW[k]:
                risked[group[p], k] += 1
                risked[CLASSES, k] += 1
            p += 1
        seen[k] = p


@njit
def shrink(
    size: int, cap: int, leaves: Any, value: Any, ties: Any, here: Any, parent: Any, kids: Any, stamp: Any, r: int
) -> int:
    """Evict the worst leaf until the cache fits; of those that lose their last child, not the ones stamped ``r``."""
    h = np.empty(len(leaves) + size, np.int64)
    n = len(leaves)
    for k in range(n):
        h[k] = leaves[k]
    for k in range(n // 2 - 1, -1, -1):
        sink(h, n, value, ties, k)
    while size > cap and n > 0:
        gone = h[0]
        n -= 1
        h[0] = h[n]
        sink(h, n, value, ties, 0)
        here[gone] = False
        size -= 1
        p = parent[gone]
        if p >= 0:
            kids[p] -= 1
            if kids[p] == 0 and stamp[p] != r:
                h[n] = p
                n += 1
                rise(h, value, ties, n - 1)
    return size


@njit
def survival_sketch(flat: Any, starts: Any, partial: Any, distinct: int, cap: int) -> Any:
    """Serve a trace; hits of each request. What the request itself just brought may go too."""
    requests, total = len(starts) - 1, len(flat)
    hits = np.zeros(requests, np.int64)
    ended, risked = np.zeros((CLASSES + 1, AGES)), np.zeros((CLASSES + 1, AGES))
    index = np.empty((CLASSES, AGES))
    index[:] = 1.0 / (LOW[:AGES] + 1.0)
    begun, group, end = np.empty(total), np.empty(total, np.int64), np.full(total, 1e18)
    seen, visits = np.zeros(AGES, np.int64), 0
    visit, last, uses = np.full(distinct, -1), np.zeros(distinct), np.zeros(distinct, np.int64)
    here, parent, kids = np.zeros(distinct, np.bool_), np.full(distinct, -1), np.zeros(distinct, np.int64)
    value, ties, size, nobody = np.zeros(distinct), np.zeros(distinct), 0, np.full(distinct, -1)
    for r in range(requests):
        a, b, now = starts[r], starts[r + 1], float(r)
        count_risks(now, visits, begun, group, end, seen, risked)
        if r % EVERY == 0 and r > 0:
            weigh(ended, risked, index)
        j = a
        while j < b and here[flat[j]]:
            j += 1
        hits[r] = j - a
        for q in range(a, b):
            x = flat[q]
            parent[x] = flat[q - 1] if q > a else -1
            if visit[x] >= 0:
                k = age_of(now - begun[visit[x]])
                ended[group[visit[x]], k] += 1
                ended[CLASSES, k] += 1
                end[visit[x]] = now
            uses[x] += 1
            last[x] = now
            ties[x] = now - (q - a) * 1e-6
            begun[visits], group[visits], visit[x] = now, class_of(uses[x], partial[r] if q == b - 1 else 0), visits
            visits += 1
        for q in range(j, b):
            here[flat[q]] = True
            size += 1
            if q > a:
                kids[flat[q - 1]] += 1
        if size > cap:
            residents = np.flatnonzero(here)
            for x in residents:
                value[x] = index[group[visit[x]], age_of(now - last[x])]
            size = shrink(size, cap, residents[kids[residents] == 0], value, ties, here, parent, kids, nobody, r)
    return hits


@njit
def hybrid_as_written(flat: Any, starts: Any, at_s: Any, distinct: int, cap: int) -> Any:
    """LRU-2's raw rank and freshness (a = .5, decay .01, no content types), and the greatest score is evicted."""
    requests = len(starts) - 1
    hits = np.zeros(requests, np.int64)
    last, time, before = np.zeros(distinct), np.zeros(distinct), np.full(distinct, -1e9)
    uses, depth, stamp = np.zeros(distinct, np.int64), np.zeros(distinct), np.full(distinct, -1)
    here, parent, kids = np.zeros(distinct, np.bool_), np.full(distinct, -1), np.zeros(distinct, np.int64)
    value, ties, size = np.zeros(distinct), np.zeros(distinct), 0
    for r in range(requests):
        a, b = starts[r], starts[r + 1]
        j = a
        while j < b and here[flat[j]]:
            j += 1
        hits[r] = j - a
        for q in range(a, b):
            x = flat[q]
            parent[x] = flat[q - 1] if q > a else -1
            if uses[x] > 0:
                before[x] = last[x]
            depth[x], last[x], time[x], stamp[x] = q - a, r, at_s[r], r
            uses[x] += 1
        need = size + (b - j) - cap
        if need > 0:
            residents = np.flatnonzero(here)
            key = np.where(uses[residents] >= 2, before[residents], last[residents] - 1e7) - depth[residents] * 1e-6
            for rank, k in enumerate(np.argsort(key)):
                x = residents[k]
                value[x] = -(0.5 * rank + 0.5 / (1.0 + 0.01 * (at_s[r] - time[x])))
                ties[x] = last[x] - depth[x] * 1e-6
            free = residents[(kids[residents] == 0) & (stamp[residents] != r)]
            size = shrink(size, max(size - need, 0), free, value, ties, here, parent, kids, stamp, r)
        while j < b and size < cap:
            here[flat[j]] = True
            size += 1
            if j > a:
                kids[flat[j - 1]] += 1
            j += 1
    return hits


def random_leaf(flat: NDArray[np.int64], starts: NDArray[np.int64], cap: int, seed: int = 0) -> NDArray[np.int64]:
    """Evict any leaf that the request does not use."""
    rng = np.random.default_rng(seed)
    draws = iter(rng.random(len(flat) * 2).tolist())
    path_of, parents, kids, leaves, place = (
        flat.tolist(),
        dict[int, int](),
        dict[int, int](),
        list[int](),
        dict[int, int](),
    )
    hits = np.zeros(len(starts) - 1, np.int64)

    def off(block: int) -> None:
        at, moved = place.pop(block), leaves.pop()
        if moved != block:
            leaves[at], place[moved] = moved, at

    def on(block: int) -> None:
        place[block] = len(leaves)
        leaves.append(block)

    for r in range(len(starts) - 1):
        path = path_of[starts[r] : starts[r + 1]]
        j = 0
        while j < len(path) and path[j] in parents:
            if path[j] in place:
                off(path[j])
            j += 1
        hits[r] = j
        for k in range(j, len(path)):
            if len(parents) >= cap:
                if not leaves:
                    break
                gone = leaves[int(next(draws) * len(leaves))]
                off(gone)
                above = parents.pop(gone)
                kids.pop(gone, None)
                if above in kids:
                    kids[above] -= 1
                    if kids[above] == 0 and above not in path[:k]:
                        on(above)
            parents[path[k]] = path[k - 1] if k else -(2**63)
            kids[path[k]] = 0
            if k:
                kids[path[k - 1]] += 1
            j = k + 1
        if j and kids[path[j - 1]] == 0:
            on(path[j - 1])
    return hits
