"""A heap of evictable leaves that knows where each is; the one to evict first on top."""

from __future__ import annotations

from stabilitykit.kernels import kernel
from stabilitykit.kernels.pointers import Block, offset_f8, offset_i8
from stabilitykit.mitigations.kv.layout import (
    DEPTH,
    FLOATS,
    HEADER,
    HEAP,
    HEAPED,
    K1,
    K2,
    KEY,
    MARK_WORDS,
    MARKS,
    POS,
    REFERENCES,
    WORDS,
    K,
)  # fmt: skip

__all__ = ["heap_down", "heap_push", "heap_remove", "is_before"]


@kernel
def is_before(m: Block, f: Block, a: int, b: int) -> bool:
    """Tell whether node a is evicted before node b: the lower key, then the deeper one, then the lower id."""
    width = REFERENCES + int(m[K])
    one, two = offset_f8(f, int(m[FLOATS]) + a * width), offset_f8(f, int(m[FLOATS]) + b * width)
    if one[K1] != two[K1]:
        return one[K1] < two[K1]
    if one[K2] != two[K2]:
        return one[K2] < two[K2]
    if one[DEPTH] != two[DEPTH]:
        return one[DEPTH] > two[DEPTH]
    return m[HEADER + a * WORDS + KEY] < m[HEADER + b * WORDS + KEY]


@kernel
def put(m: Block, at: int, s: int) -> int:
    """Write a node to a place of the heap; gives 0."""
    m[int(m[HEAP]) + at] = s
    m[int(m[MARKS]) + s * MARK_WORDS + POS] = at + 1
    return 0


@kernel
def heap_up(m: Block, f: Block, at: int) -> int:
    """Let the node at a place rise; gives its new place."""
    h = offset_i8(m, int(m[HEAP]))
    s = int(h[at])
    while at > 0 and is_before(m, f, s, int(h[(at - 1) >> 1])):
        put(m, at, int(h[(at - 1) >> 1]))
        at = (at - 1) >> 1
    put(m, at, s)
    return at


@kernel
def heap_down(m: Block, f: Block, at: int) -> int:
    """Let the node at a place sink; gives 0."""
    h, n, start = offset_i8(m, int(m[HEAP])), int(m[HEAPED]), at
    s = int(h[at])
    while 2 * at + 1 < n:
        child = 2 * at + 1
        if child + 1 < n and is_before(m, f, int(h[child + 1]), int(h[child])):
            child += 1
        if not is_before(m, f, int(h[child]), s):
            break
        put(m, at, int(h[child]))
        at = child
    if at != start:
        put(m, at, s)
    return 0


@kernel
def heap_push(m: Block, f: Block, s: int) -> int:
    """Add a node; gives 0."""
    n = int(m[HEAPED])
    m[HEAPED] = n + 1
    put(m, n, s)
    heap_up(m, f, n)
    return 0


@kernel
def heap_remove(m: Block, f: Block, s: int) -> int:
    """Take a node out, where it is in; gives 0."""
    at, n = int(m[int(m[MARKS]) + s * MARK_WORDS + POS]) - 1, int(m[HEAPED]) - 1
    if at < 0:
        return 0
    m[int(m[MARKS]) + s * MARK_WORDS + POS] = 0
    m[HEAPED] = n
    if at != n:
        put(m, at, int(m[int(m[HEAP]) + n]))
        heap_down(m, f, heap_up(m, f, at))
    return 0
