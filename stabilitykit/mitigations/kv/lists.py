"""LRU and SIEVE over prefix trees: one linked list, no scores.

LRU needs no search for leaves: a path is touched from its tail to its head, so a block is always fresher than what
follows it, and the stale end of the list is a leaf.
"""

from __future__ import annotations

from stabilitykit.kernels import kernel
from stabilitykit.kernels.pointers import Block, offset_i8
from stabilitykit.mitigations.kv.layout import (
    ADMITTED,
    CAPACITY,
    COUNT,
    HAND,
    HEADER,
    KIDS,
    LRU,
    MARK_WORDS,
    MARKS,
    OP,
    PARENT,
    PINS,
    POLICY,
    PREV,
    REQUEST,
    SERIAL,
    SIEVE,
    SIZE,
    STAMP,
    WORDS,
)  # fmt: skip
from stabilitykit.mitigations.kv.table import enter, find, forget, leave, link_after, settle, unlink

__all__ = ["list_admit", "list_drop", "list_evict", "list_request", "list_touch"]


@kernel
def is_held(d: Block, s: int, serial: int) -> bool:
    """Tell whether a node must stay: it has children, is pinned, or belongs to the request that is being served."""
    return d[s * WORDS + KIDS] > 0 or d[s * WORDS + PINS] > 0 or d[s * WORDS + STAMP] == serial


@kernel
def stale_end(m: Block) -> int:
    """Give the first node from the stale end that may go, 0 when none may."""
    d, serial = offset_i8(m, HEADER), int(m[SERIAL]) if m[OP] == REQUEST else -1
    s = int(d[PREV])
    while s != 0 and is_held(d, s, serial):
        s = int(d[s * WORDS + PREV])
    return s


@kernel
def under_hand(m: Block) -> int:
    """Give the node that SIEVE's hand stops at, 0 when none may go; passed ones lose their mark."""
    d, e = offset_i8(m, HEADER), offset_i8(m, int(m[MARKS]))
    serial = int(m[SERIAL]) if m[OP] == REQUEST else -1
    s = int(m[HAND])
    for _ in range(2 * int(m[SIZE]) + 2):
        if s == 0:
            s = int(d[PREV])
        if s != 0 and not is_held(d, s, serial):
            if e[s * MARK_WORDS + COUNT] == 0:
                m[HAND] = d[s * WORDS + PREV]
                return s
            e[s * MARK_WORDS + COUNT] = 0
        s = int(d[s * WORDS + PREV])
    return 0


@kernel
def list_drop(m: Block, s: int) -> int:
    """Evict this node; gives 1."""
    d = offset_i8(m, HEADER)
    if m[HAND] == s:
        m[HAND] = d[s * WORDS + PREV]
    unlink(d, s)
    leave(m, s)
    forget(m, s)
    return 1


@kernel
def drop_one(m: Block) -> int:
    """Evict one node; gives 0 when none may go."""
    s = stale_end(m) if m[POLICY] == LRU else under_hand(m)
    return list_drop(m, s) if s != 0 else 0


@kernel
def list_evict(m: Block, wanted: int) -> int:
    """Evict up to so many nodes; gives how many went."""
    done = 0
    while done < wanted and drop_one(m) != 0:
        done += 1
    return done


@kernel
def note_use(m: Block, s: int) -> int:
    """Mark a resident node as used: the fresh end for LRU, its bit for SIEVE; gives 0."""
    d = offset_i8(m, HEADER)
    d[s * WORDS + STAMP] = m[SERIAL]
    if m[POLICY] == LRU:
        unlink(d, s)
        link_after(d, s, 0)
    else:
        m[int(m[MARKS]) + s * MARK_WORDS + COUNT] = 1
    return 0


@kernel
def list_touch(m: Block, s: int) -> int:
    """Use a resident node and all that it stands on; gives 0."""
    d = offset_i8(m, HEADER)
    while s != 0:
        note_use(m, s)
        s = int(d[s * WORDS + PARENT])
    return 0


@kernel
def list_admit(m: Block, key: int, parent: int) -> int:
    """Make a block resident behind its parent; gives its slot, 0 when there is no room."""
    d = offset_i8(m, HEADER)
    s = find(m, key)
    if s != 0:
        d[s * WORDS + STAMP] = m[SERIAL]
        return s
    if m[SIZE] >= m[CAPACITY] and drop_one(m) == 0:
        return 0
    s = enter(m, key)
    settle(m, s, parent)
    d[s * WORDS + STAMP] = m[SERIAL]
    if m[POLICY] == SIEVE:
        m[int(m[MARKS]) + s * MARK_WORDS + COUNT] = 0
        parent = 0
    link_after(d, s, parent)
    m[ADMITTED] = 1
    return s


@kernel
def list_request(m: Block, ids: Block, first: int, last: int) -> int:
    """Serve one path of blocks; gives its leading blocks that were resident."""
    d, j, tail = offset_i8(m, HEADER), first, 0
    while j < last:
        s = find(m, int(ids[j]))
        if s == 0:
            break
        d[s * WORDS + STAMP] = m[SERIAL]
        tail = s
        j += 1
    hits = j - first
    list_touch(m, tail)
    while j < last:
        s = list_admit(m, int(ids[j]), tail)
        if s == 0:
            break
        tail = s
        j += 1
    return hits
