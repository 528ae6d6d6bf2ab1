"""How soon blocks of a class come back, learned online, and what a place in the cache is worth.

A visit is the time from one use of a block to its next. For each class and each bucket of age the table counts the
visits that reached that age and those that ended there: hazards, and from them the index of a block of that age,

    max over horizons s of  P(reuse within s) / E[time that it occupies its place until reuse or s]

(Gittins' index; LHD's hit density is one horizon of it). The block with the least index goes. Classes borrow from the
pooled hazards by PRIOR visits. Visits are remembered in a ring; one that fell out of it is censored, as is a block
that the ghosts forgot.

References
----------
N. Beckmann, H. Chen, A. Cidon, "LHD: Improving cache hit rate by maximizing hit density", NSDI 2018.
J. Gittins, "Bandit processes and dynamic allocation indices", 1979.
"""

from __future__ import annotations

from stabilitykit.kernels import kernel
from stabilitykit.kernels.pointers import Block, offset_f8, offset_i8
from stabilitykit.mitigations.kv.layout import (
    BUCKETS,
    CLASS,
    CLASSED,
    CLASSES,
    COUNT,
    EVERY,
    HAZARD,
    INDEX,
    LOWS,
    MARK_WORDS,
    MARKS,
    MODE,
    PRIOR,
    REUSED,
    RING,
    RISKED,
    SERIAL,
    UNTIL,
    VISIT,
    VISITED,
    VISITS,
)  # fmt: skip

__all__ = ["bucket_of", "learn", "note_end", "note_visit"]

POOL = CLASSES
"""The row of all classes together."""
_MOST = 1048576.0
"""Visits after which all counts are halved, so that the tables follow what changes."""


@kernel
def bucket_of(low: Block, age: float) -> int:
    """Give the bucket of an age: the last one that begins at or below it."""
    first, last = 0, BUCKETS - 1
    while first < last:
        middle = (first + last + 1) >> 1
        if low[middle] <= age:
            first = middle
        else:
            last = middle - 1
    return first


@kernel
def reuse_group(count: int) -> int:
    """Give the group of a number of uses: 1, 2, 3, below 8, below 32, more."""
    if count <= 3:
        return count - 1
    return 3 if count < 8 else 4 if count < 32 else 5


@kernel
def gap_group(gap: float) -> int:
    """Give the group of the time between two uses in requests: factors of 4, 0 for none."""
    if gap <= 0.0:
        return 0
    group, limit = 1, 4.0
    while group < 7 and gap + 1.0 >= limit:
        group += 1
        limit *= 4.0
    return group


@kernel
def class_of(mode: int, count: int, gap: float, is_partial: int) -> int:
    """Give a block's class: by uses and whether it is partial, and with mode 1 by its last gap too."""
    if mode == 0:
        return reuse_group(count) * 2 + is_partial
    return (min(count - 1, 7) * 8 + gap_group(gap)) * 2 + is_partial


@kernel
def note_end(m: Block, f: Block, s: int, is_reuse: int) -> int:
    """End the visit of a node, by a use or because it is forgotten; gives 0."""
    visit = int(m[int(m[MARKS]) + s * MARK_WORDS + VISIT])
    ring = int(m[RING])
    if visit == 0 or visit <= int(m[VISITED]) - ring:
        return 0
    begun, ended = offset_i8(m, int(m[VISITS])), offset_i8(m, int(m[VISITS]) + ring)
    place = visit & (ring - 1)
    now = int(m[SERIAL])
    if is_reuse != 0:
        row = int(m[int(m[VISITS]) + 2 * ring + place]) * BUCKETS
        bucket = bucket_of(offset_f8(f, int(m[LOWS])), float(now - int(begun[place])))
        reused = offset_f8(f, int(m[REUSED]))
        reused[row + bucket] = float(reused[row + bucket]) + 1.0
        reused[POOL * BUCKETS + bucket] = float(reused[POOL * BUCKETS + bucket]) + 1.0
    ended[place] = now
    return 0


@kernel
def note_visit(m: Block, f: Block, s: int, gap: float, is_partial: int) -> int:
    """Begin a visit of a node that was just used, in the class it has from now on; gives 0."""
    e, ring, visit = offset_i8(m, int(m[MARKS]) + s * MARK_WORDS), int(m[RING]), int(m[VISITED]) + 1
    found = class_of(int(m[MODE]), int(e[COUNT]), gap, is_partial)
    m[CLASSED] = max(int(m[CLASSED]), found + 1)
    e[CLASS] = found
    log = offset_i8(m, int(m[VISITS]) + (visit & (ring - 1)))
    m[VISITED] = visit
    e[VISIT] = visit
    log[0] = m[SERIAL]
    log[ring] = -1
    log[2 * ring] = found
    return 0


@kernel
def count_risks(m: Block, f: Block) -> int:
    """Count the visits that have reached each age by now; gives 0."""
    now, newest, ring = int(m[SERIAL]), int(m[VISITED]), int(m[RING])
    log, low, until = offset_i8(m, int(m[VISITS])), offset_f8(f, int(m[LOWS])), offset_i8(m, int(m[UNTIL]))
    risked = offset_f8(f, int(m[RISKED]))
    for k in range(BUCKETS):
        visit = max(int(until[k]), newest - ring)
        while visit < newest:
            place = (visit + 1) & (ring - 1)
            begun, ended = float(log[place]), float(log[ring + place])
            if begun + low[k] > now:
                break
            if ended < 0.0 or ended > begun + low[k]:
                row = int(log[2 * ring + place]) * BUCKETS + k
                risked[row] = float(risked[row]) + 1.0
                risked[POOL * BUCKETS + k] = float(risked[POOL * BUCKETS + k]) + 1.0
            visit += 1
        until[k] = visit
    return 0


@kernel
def weigh(m: Block, f: Block, row: int) -> int:
    """Compute the index of one class at every age from its hazards; gives 0."""
    hazard, low = offset_f8(f, int(m[HAZARD])), offset_f8(f, int(m[LOWS]))
    reused, risked = offset_f8(f, int(m[REUSED])), offset_f8(f, int(m[RISKED]))
    index, prior = offset_f8(f, int(m[INDEX]) + row * BUCKETS), float(f[PRIOR])
    for a in range(BUCKETS):
        pooled = (float(reused[POOL * BUCKETS + a]) + 0.05) / (float(risked[POOL * BUCKETS + a]) + 1.0)
        own = float(reused[row * BUCKETS + a]) + prior * pooled
        hazard[a] = min(own / (float(risked[row * BUCKETS + a]) + prior), 0.999)
    for a in range(BUCKETS):
        stays, reuse, time, best = 1.0, 0.0, 0.0, 0.0
        for s in range(a, BUCKETS - 1):
            width = (float(low[s + 1]) - float(low[s])) * (0.5 if s == a else 1.0)
            time += stays * width * (1.0 - 0.5 * float(hazard[s]))
            reuse += stays * float(hazard[s])
            stays *= 1.0 - float(hazard[s])
            best = max(best, reuse / time)
        index[a] = best
    return 0


@kernel
def learn(m: Block, f: Block) -> int:
    """Bring the tables up to now; every EVERY requests the indices too; gives 0."""
    count_risks(m, f)
    if int(m[SERIAL]) % int(m[EVERY]) != 0:
        return 0
    for row in range(int(m[CLASSED])):
        weigh(m, f, row)
    if float(f[int(m[RISKED]) + POOL * BUCKETS]) > _MOST:
        for k in range((POOL + 1) * BUCKETS):
            f[int(m[REUSED]) + k] = float(f[int(m[REUSED]) + k]) * 0.5
            f[int(m[RISKED]) + k] = float(f[int(m[RISKED]) + k]) * 0.5
    return 0
