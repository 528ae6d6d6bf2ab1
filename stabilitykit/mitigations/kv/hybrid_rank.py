"""The source's hybrid of LRU-K and freshness, well defined (formulas A4.2, kv-and-context).

``retention = (1 - a) * r + a * (w / 2) / (1 + decay * age)``; r in [0, 1] is the rank of the K-th last use among the
residents (fewer than K uses lowest, ties by the last use, then the deeper first; one resident: 1), w the weight of the
content type, age the time since the last use. A block past its time to live goes before all others.
"""

from __future__ import annotations

from stabilitykit.kernels import kernel
from stabilitykit.kernels.pointers import Block, offset_f8, offset_i8
from stabilitykit.mitigations.kv.layout import (
    ALPHA,
    CONTENT,
    DECAY,
    DEPTH,
    FLOATS,
    HEADER,
    IS_MOVED,
    KEY,
    MARK_WORDS,
    MARKS,
    MOVED,
    MOVED_N,
    NOW,
    ORDER,
    ORDERED,
    RANK,
    REFERENCES,
    RESIDENT,
    STATE,
    TIME,
    TTLS,
    WEIGHTS,
    WORDS,
    K,
)  # fmt: skip

__all__ = ["note_moved", "rank_residents", "retention"]


@kernel
def note_moved(m: Block, s: int) -> int:
    """Note that a node's place among the residents has changed; gives 0."""
    mark = int(m[MARKS]) + s * MARK_WORDS + IS_MOVED
    if m[mark] == 0:
        m[mark] = 1
        m[int(m[MOVED]) + int(m[MOVED_N])] = s
        m[MOVED_N] = int(m[MOVED_N]) + 1
    return 0


@kernel
def is_colder(m: Block, f: Block, a: int, b: int) -> bool:
    """Tell whether node a ranks below node b."""
    k = int(m[K])
    floats, width = offset_f8(f, int(m[FLOATS])), REFERENCES + k
    one, two = a * width, b * width
    if floats[one + REFERENCES + k - 1] != floats[two + REFERENCES + k - 1]:
        return floats[one + REFERENCES + k - 1] < floats[two + REFERENCES + k - 1]
    if floats[one + REFERENCES] != floats[two + REFERENCES]:
        return floats[one + REFERENCES] < floats[two + REFERENCES]
    if floats[one + DEPTH] != floats[two + DEPTH]:
        return floats[one + DEPTH] > floats[two + DEPTH]
    return m[HEADER + a * WORDS + KEY] < m[HEADER + b * WORDS + KEY]


@kernel
def sort_moved(m: Block, f: Block, n: int) -> int:
    """Sort the first n moved nodes (Shell's way: no second array); gives 0."""
    a, gap = offset_i8(m, int(m[MOVED])), 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            s, j = int(a[i]), i
            while j >= gap and is_colder(m, f, s, int(a[j - gap])):
                a[j] = a[j - gap]
                j -= gap
            a[j] = s
        gap = gap // 3
    return 0


@kernel
def rank_residents(m: Block, f: Block) -> int:
    """Give every resident its rank; what has not moved since the last time is in order already; gives 0."""
    d, e, a = offset_i8(m, HEADER), offset_i8(m, int(m[MARKS])), offset_i8(m, int(m[ORDER]))
    moved, floats, width = offset_i8(m, int(m[MOVED])), offset_f8(f, int(m[FLOATS])), REFERENCES + int(m[K])
    kept, n = 0, 0
    for i in range(int(m[ORDERED])):
        s = int(a[i])
        if d[s * WORDS + STATE] == RESIDENT and e[s * MARK_WORDS + IS_MOVED] == 0:
            a[kept] = s
            kept += 1
    for i in range(int(m[MOVED_N])):
        s = int(moved[i])
        e[s * MARK_WORDS + IS_MOVED] = 0
        if d[s * WORDS + STATE] == RESIDENT:
            moved[n] = s
            n += 1
    sort_moved(m, f, n)
    m[MOVED_N] = 0
    m[ORDERED] = kept + n
    last = float(max(kept + n - 1, 1))
    for at in range(kept + n - 1, -1, -1):
        if n == 0 or (kept > 0 and is_colder(m, f, int(moved[n - 1]), int(a[kept - 1]))):
            kept -= 1
            a[at] = a[kept]
        else:
            n -= 1
            a[at] = moved[n]
        floats[int(a[at]) * width + RANK] = float(at) / last if m[ORDERED] > 1 else 1.0
    return 0


@kernel
def retention(m: Block, f: Block, s: int) -> float:
    """Give what keeping a ranked node is worth; -1 past its time to live."""
    floats = offset_f8(f, int(m[FLOATS]) + s * (REFERENCES + int(m[K])))
    content = int(m[int(m[MARKS]) + s * MARK_WORDS + CONTENT])
    now, used = float(f[NOW]), float(floats[TIME])
    age = now - used if now > used else 0.0  # both are minus infinity where the host gives no time
    if age > f[TTLS + content]:
        return -1.0
    fresh = 0.5 * float(f[WEIGHTS + content]) / (1.0 + float(f[DECAY]) * age)
    return (1.0 - float(f[ALPHA])) * float(floats[RANK]) + float(f[ALPHA]) * fresh
