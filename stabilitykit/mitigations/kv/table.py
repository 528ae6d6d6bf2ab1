"""Nodes by 64-bit key, in open addressing; the list of residents and the bounded list of ghosts."""

from __future__ import annotations

from stabilitykit.kernels import kernel
from stabilitykit.kernels.pointers import Block, offset_i8
from stabilitykit.mitigations.kv.layout import (
    FREE,
    GHOST,
    GHOST_LIST,
    GHOSTS,
    HEADER,
    KEY,
    KIDS,
    LOOSE,
    MASK,
    MOST_GHOSTS,
    NEXT,
    OUT,
    OUT_N,
    PARENT,
    PINS,
    PREV,
    RESIDENT,
    SIZE,
    STAMP,
    STATE,
    TABLE,
    UNUSED,
    WORDS,
)  # fmt: skip

__all__ = ["enter", "find", "forget", "leave", "link_after", "obtain", "release", "settle", "unlink"]

_WORD = 0xFFFF_FFFF


@kernel
def home(key: int, mask: int) -> int:
    """Give the place in the table where a key belongs; products stay below 2**63."""
    mixed = ((key & _WORD) * 0x7FEB_352D) ^ (((key >> 32) & _WORD) * 0x45D9_F3B1)
    return ((mixed >> 29) ^ mixed) & mask


@kernel
def find(m: Block, key: int) -> int:
    """Give the slot of a key, 0 when it is not known."""
    t, d, mask = offset_i8(m, int(m[TABLE])), offset_i8(m, HEADER), int(m[MASK])
    at = home(key, mask)
    while True:
        s = int(t[at])
        if s == 0 or d[s * WORDS + KEY] == key:
            return s
        at = (at + 1) & mask


@kernel
def enter(m: Block, key: int) -> int:
    """Take a free node for a key that is not known; gives its slot."""
    t, d, mask = offset_i8(m, int(m[TABLE])), offset_i8(m, HEADER), int(m[MASK])
    s = int(m[FREE])
    if s != 0:
        m[FREE] = d[s * WORDS + NEXT]
    else:
        s = int(m[UNUSED])
        m[UNUSED] = s + 1
    at = home(key, mask)
    while t[at] != 0:
        at = (at + 1) & mask
    t[at] = s
    d[s * WORDS + KEY] = key
    d[s * WORDS + KIDS] = 0
    d[s * WORDS + PINS] = 0
    d[s * WORDS + STAMP] = 0
    d[s * WORDS + STATE] = LOOSE
    return s


@kernel
def forget(m: Block, s: int) -> int:
    """Give a node back; its place in the table is filled from behind, so no search breaks off; gives 0."""
    t, d, mask = offset_i8(m, int(m[TABLE])), offset_i8(m, HEADER), int(m[MASK])
    at = home(int(d[s * WORDS + KEY]), mask)
    while t[at] != s:
        at = (at + 1) & mask
    hole = at
    while True:
        at = (at + 1) & mask
        other = int(t[at])
        if other == 0:
            break
        if ((at - home(int(d[other * WORDS + KEY]), mask)) & mask) >= ((at - hole) & mask):
            t[hole] = other
            hole = at
    t[hole] = 0
    d[s * WORDS + STATE] = 0
    d[s * WORDS + NEXT] = m[FREE]
    m[FREE] = s
    return 0


@kernel
def link_after(d: Block, s: int, before: int) -> int:
    """Put a node behind another in a circular list; gives 0."""
    after = int(d[before * WORDS + NEXT])
    d[s * WORDS + PREV] = before
    d[s * WORDS + NEXT] = after
    d[before * WORDS + NEXT] = s
    d[after * WORDS + PREV] = s
    return 0


@kernel
def unlink(d: Block, s: int) -> int:
    """Take a node out of its list; gives 0."""
    before, after = int(d[s * WORDS + PREV]), int(d[s * WORDS + NEXT])
    d[before * WORDS + NEXT] = after
    d[after * WORDS + PREV] = before
    return 0


@kernel
def obtain(m: Block, key: int) -> int:
    """Give the node of a key: the resident one, the ghost taken out of its list, or a new one."""
    s = find(m, key)
    if s == 0:
        return enter(m, key)
    d = offset_i8(m, HEADER)
    if d[s * WORDS + STATE] == GHOST:
        unlink(d, s)
        m[GHOSTS] = int(m[GHOSTS]) - 1
        d[s * WORDS + STATE] = LOOSE
    return s


@kernel
def settle(m: Block, s: int, parent: int) -> int:
    """Make a loose node resident under its parent; gives 0."""
    d = offset_i8(m, HEADER)
    d[s * WORDS + STATE] = RESIDENT
    d[s * WORDS + PARENT] = parent
    if parent != 0:
        d[parent * WORDS + KIDS] = int(d[parent * WORDS + KIDS]) + 1
    m[SIZE] = int(m[SIZE]) + 1
    return 0


@kernel
def leave(m: Block, s: int) -> int:
    """End a node's residence and note its key for the host; gives its parent."""
    d = offset_i8(m, HEADER)
    m[int(m[OUT]) + int(m[OUT_N])] = d[s * WORDS + KEY]
    m[OUT_N] = int(m[OUT_N]) + 1
    m[SIZE] = int(m[SIZE]) - 1
    d[s * WORDS + STATE] = LOOSE
    parent = int(d[s * WORDS + PARENT])
    if parent != 0:
        d[parent * WORDS + KIDS] = int(d[parent * WORDS + KIDS]) - 1
    return parent


@kernel
def release(m: Block, s: int) -> int:
    """Remember a loose node as a ghost; gives the slot that must be forgotten for it, 0 for none."""
    d, most = offset_i8(m, HEADER), int(m[MOST_GHOSTS])
    if most == 0:
        return s
    ghosts = int(m[GHOST_LIST])
    link_after(d, s, ghosts)
    d[s * WORDS + STATE] = GHOST
    m[GHOSTS] = int(m[GHOSTS]) + 1
    if m[GHOSTS] <= most:
        return 0
    oldest = int(d[ghosts * WORDS + PREV])
    unlink(d, oldest)
    m[GHOSTS] = int(m[GHOSTS]) - 1
    return oldest
