"""How soon blocks of a class come back, learned online, and what a place in the cache is worth.

A visit is the time from one use of a block to its next. For each class and each bucket of age the table counts the
visits that reached that age and those that ended there: hazards, and from them the index of a block of that age,

    max over horizons s of  P(reuse within s) / E[time that it occupies its place until reuse or s]

(Gittins' index; LHD's hit density is one horizon of it). The block with the least index goes. Visits are remembered in
a ring; one that fell out of it is censored, as is a block that the ghosts forgot.

Coarse classes are uses and whether the block is partial. A finer one also knows what the prompt that used the block was
like: how many of its blocks had never been seen (a new document, the next turn of a conversation); and how often the
path to the block had grown before the block was first seen. It takes the hazards of its coarse class, times the reuses
that it had over those that the coarse class would have had (a relative risk), and departs from that as its own visits
outweigh PRIOR. Coarse classes borrow from all together in the same way, without the ratio.

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
    CLASSES,
    COARSE,
    COUNT,
    EVERY,
    FINE,
    FRESH,
    HAZARDS,
    INDEX,
    LEVEL,
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

__all__ = ["bucket_of", "learn", "level_behind", "note_end", "note_visit", "worth"]

FIRST = COARSE * FINE
"""The row of the first coarse class, behind the finer ones of all."""
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
def fresh_group(fresh: int) -> int:
    """Give the group of a number of blocks never seen before: octaves, 7 from 127 on."""
    group = 0
    while group < 7 and fresh + 1 >= 2 << group:
        group += 1
    return group


@kernel
def class_of(m: Block, count: int, level: int, is_partial: int) -> int:
    """Give a block's class; with mode 0 no finer one than the coarse class that it is the first of."""
    finer = min(level, 2) * 8 + fresh_group(int(m[FRESH])) if m[MODE] != 0 else 0
    return (reuse_group(count) * 2 + is_partial) * FINE + finer


@kernel
def level_behind(m: Block, s: int) -> int:
    """Give the level of what is first seen behind a node: one more where the node was known before; 0 behind none."""
    if s == 0:
        return 0
    e = offset_i8(m, int(m[MARKS]) + s * MARK_WORDS)
    return int(e[LEVEL]) + (1 if e[COUNT] > 1 else 0)


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
    ended[place] = now
    return 0


@kernel
def note_visit(m: Block, s: int, is_partial: int) -> int:
    """Begin a visit of a node that was just used, in the class it has from now on; gives 0."""
    e, ring, visit = offset_i8(m, int(m[MARKS]) + s * MARK_WORDS), int(m[RING]), int(m[VISITED]) + 1
    e[CLASS] = class_of(m, int(e[COUNT]), int(e[LEVEL]), is_partial)
    log = offset_i8(m, int(m[VISITS]) + (visit & (ring - 1)))
    m[VISITED] = visit
    e[VISIT] = visit
    log[0] = m[SERIAL]
    log[ring] = -1
    log[2 * ring] = e[CLASS]
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
            visit += 1
        until[k] = visit
    return 0


@kernel
def add_up(m: Block, f: Block) -> int:
    """Add the classes up to the coarse ones, and those to the pool; gives 0."""
    reused, risked = offset_f8(f, int(m[REUSED])), offset_f8(f, int(m[RISKED]))
    for k in range(FIRST * BUCKETS, (POOL + 1) * BUCKETS):
        reused[k] = 0.0
        risked[k] = 0.0
    for row in range(POOL):
        above = FIRST + row // FINE if row < FIRST else POOL
        if risked[row * BUCKETS] > 0.0:
            for a in range(BUCKETS):
                reused[above * BUCKETS + a] = float(reused[above * BUCKETS + a]) + float(reused[row * BUCKETS + a])
                risked[above * BUCKETS + a] = float(risked[above * BUCKETS + a]) + float(risked[row * BUCKETS + a])
    return 0


@kernel
def note_hazards(reused: Block, risked: Block, above: Block, hazards: Block, prior: float, is_finer: int) -> int:
    """Write a class's hazards from its counts and from the hazards of the class above it; gives 0."""
    had, due = prior, prior
    for a in range(BUCKETS):
        had += float(reused[a])
        due += float(risked[a]) * float(above[a])
    lent = prior * (had / due) if is_finer != 0 else prior
    for a in range(BUCKETS):
        hazards[a] = min((float(reused[a]) + lent * float(above[a])) / (float(risked[a]) + prior), 0.999)
    return 0


@kernel
def note_index(hazards: Block, low: Block, index: Block, spans: Block) -> int:
    """Write the index at every age, the last first; gives 0.

    Behind each age lie spans of buckets, the ratio of reuse to time of each less than that of the one before: the best
    horizon ends before the first span that would lower the ratio.
    """
    reuses, times, stays = spans, offset_f8(spans, BUCKETS), offset_f8(spans, 2 * BUCKETS)
    n = 0
    index[BUCKETS - 1] = 0.0
    for k in range(1, BUCKETS):
        a = BUCKETS - 1 - k
        hazard = float(hazards[a])
        width = (float(low[a + 1]) - float(low[a])) * (1.0 - 0.5 * hazard)
        for is_whole in range(2):  # a block in a bucket is in the middle of it; one that comes to it has all before it
            reuse, time, stay, at = hazard, (1.0 if is_whole == 1 else 0.5) * width, 1.0 - hazard, n
            while at > 0 and float(reuses[at - 1]) * time > reuse * float(times[at - 1]):
                at -= 1
                reuse += stay * float(reuses[at])
                time += stay * float(times[at])
                stay *= float(stays[at])
            if is_whole == 0:
                index[a] = reuse / time
            else:
                reuses[at], times[at], stays[at] = reuse, time, stay
                n = at + 1
    return 0


@kernel
def weigh(m: Block, f: Block) -> int:
    """Compute the index of every coarse class, and of the finer ones that had a visit; gives 0."""
    reused, risked, index = offset_f8(f, int(m[REUSED])), offset_f8(f, int(m[RISKED])), offset_f8(f, int(m[INDEX]))
    low, own, prior = offset_f8(f, int(m[LOWS])), offset_f8(f, int(m[HAZARDS])), float(f[PRIOR])
    shared, pool, spans = offset_f8(own, BUCKETS), offset_f8(own, 2 * BUCKETS), offset_f8(own, 3 * BUCKETS)
    for a in range(BUCKETS):
        at = POOL * BUCKETS + a
        pool[a] = (float(reused[at]) + 0.05) / (float(risked[at]) + 1.0)
    for coarse in range(COARSE):
        at = (FIRST + coarse) * BUCKETS
        note_hazards(offset_f8(reused, at), offset_f8(risked, at), pool, shared, prior, 0)
        note_index(shared, low, offset_f8(index, at), spans)
        if m[MODE] != 0:
            for row in range(coarse * FINE, (coarse + 1) * FINE):
                at = row * BUCKETS
                if risked[at] > 0.0:
                    note_hazards(offset_f8(reused, at), offset_f8(risked, at), shared, own, prior, 1)
                    note_index(own, low, offset_f8(index, at), spans)
    return 0


@kernel
def worth(m: Block, f: Block, row: int, age: float) -> float:
    """Give the index of a class at an age; that of its coarse class while its own was never computed."""
    index = offset_f8(f, int(m[INDEX]))
    if index[row * BUCKETS] == 0.0:
        row = FIRST + row // FINE
    return float(index[row * BUCKETS + bucket_of(offset_f8(f, int(m[LOWS])), age)])


@kernel
def learn(m: Block, f: Block) -> int:
    """Bring the tables up to now; every EVERY requests the indices too; gives 0."""
    count_risks(m, f)
    if int(m[SERIAL]) % int(m[EVERY]) != 0:
        return 0
    reused, risked = offset_f8(f, int(m[REUSED])), offset_f8(f, int(m[RISKED]))
    add_up(m, f)
    weigh(m, f)
    if risked[POOL * BUCKETS] > _MOST:
        for k in range(FIRST * BUCKETS):
            reused[k] = float(reused[k]) * 0.5
            risked[k] = float(risked[k]) * 0.5
    return 0
