"""The one entry of every cache policy: requests of a trace, or one operation of a serving layer."""

from __future__ import annotations

from stabilitykit.kernels import kernel
from stabilitykit.kernels.pointers import Block, offset_i8
from stabilitykit.mitigations.kv.heap import heap_remove
from stabilitykit.mitigations.kv.layout import (
    ADMIT,
    ADMITTED,
    DROP,
    EVICT,
    FRESH,
    GROWN,
    HEADER,
    KIDS,
    LRU,
    NOW,
    OP,
    OUT_N,
    PIN,
    PINS,
    POLICY,
    REQUEST,
    RESIDENT,
    SERIAL,
    SIEVE,
    STATE,
    SURVIVAL,
    TOUCH,
    UNPIN,
    WORDS,
)  # fmt: skip
from stabilitykit.mitigations.kv.lists import list_admit, list_drop, list_evict, list_request, list_touch
from stabilitykit.mitigations.kv.scored import offer, score_admit, score_drop, score_evict, score_request, score_touch
from stabilitykit.mitigations.kv.survival_index import learn, level_behind
from stabilitykit.mitigations.kv.table import find

__all__ = ["KINDS", "drive"]

KINDS = ("i8", "f8", "i8", "i8", "f8", "f8", "i8", "i8", "i8")
"""The kinds of the blocks of ``drive``."""


@kernel
def resident(m: Block, key: int) -> int:
    """Give the slot of a resident block, 0 for any other."""
    s = find(m, key)
    return s if s != 0 and m[HEADER + s * WORDS + STATE] == RESIDENT else 0


@kernel
def tick(m: Block, f: Block, at: float) -> int:
    """Begin the next request; a clock that goes backwards stands still; gives 0."""
    m[SERIAL] = int(m[SERIAL]) + 1
    m[FRESH] = 0
    f[NOW] = max(float(f[NOW]), at)
    if m[POLICY] == SURVIVAL:
        learn(m, f)
    return 0


@kernel
def serve(
    m: Block, f: Block, ids: Block, starts: Block, at: Block, nexts: Block, traits: Block, hits: Block, path: Block
) -> int:
    """Serve requests 0 to count - 1; gives 0."""
    is_list = m[POLICY] == LRU or m[POLICY] == SIEVE
    for r in range(int(hits[0])):
        m[OUT_N] = 0
        tick(m, f, float(at[r]))
        first, last = int(starts[r]), int(starts[r + 1])
        if is_list:
            hits[r + 1] = list_request(m, ids, first, last)
        else:
            hits[r + 1] = score_request(m, f, ids, nexts, path, first, last, int(traits[r]))
    return 0


@kernel
def admit(m: Block, f: Block, key: int, parent: int, traits: int) -> int:
    """Make one block resident behind its parent, which is used and stays; gives 1, or 0 when it was not admitted."""
    pins = HEADER + parent * WORDS + PINS
    m[pins] = int(m[pins]) + 1
    if m[POLICY] == LRU or m[POLICY] == SIEVE:
        list_touch(m, parent)
        list_admit(m, key, parent)
    else:
        score_touch(m, f, parent)
        heap_remove(m, f, parent)
        m[GROWN] = level_behind(m, parent)
        m[FRESH] = int(m[FRESH]) + (1 if find(m, key) == 0 else 0)
        offer(m, f, score_admit(m, f, key, parent, 1, 0.0, traits))
    m[pins] = int(m[pins]) - 1
    return int(m[ADMITTED])


@kernel
def alter(m: Block, f: Block, s: int) -> int:
    """Touch, drop, pin or unpin a resident block; gives 1 when it was done."""
    is_list, op, d = m[POLICY] == LRU or m[POLICY] == SIEVE, int(m[OP]), offset_i8(m, HEADER + s * WORDS)
    if op == TOUCH:
        return 1 - (list_touch(m, s) if is_list else score_touch(m, f, s))
    if op == PIN:
        d[PINS] = int(d[PINS]) + 1
        return 1 - (0 if is_list else heap_remove(m, f, s))
    if op == UNPIN and d[PINS] > 0:
        d[PINS] = int(d[PINS]) - 1
        return 1 - (0 if is_list else offer(m, f, s))
    if op == DROP and d[PINS] == 0 and d[KIDS] == 0:
        return list_drop(m, s) if is_list else score_drop(m, f, s)
    return 0


@kernel
def operate(m: Block, f: Block, ids: Block) -> int:
    """Carry out one operation; gives 1 when it was done, 0 when not; of evictions, how many."""
    m[OUT_N] = 0
    m[ADMITTED] = 0
    if m[OP] == EVICT:
        is_list = m[POLICY] == LRU or m[POLICY] == SIEVE
        return list_evict(m, int(ids[3])) if is_list else score_evict(m, f, int(ids[3]))
    s = resident(m, int(ids[0]))
    if m[OP] != ADMIT:
        return alter(m, f, s) if s != 0 else 0
    parent = resident(m, int(ids[1])) if ids[2] != 0 else 0
    if s != 0 or (ids[2] != 0 and parent == 0):
        return 0
    done = admit(m, f, int(ids[0]), parent, int(ids[3]))
    if m[POLICY] != LRU and m[POLICY] != SIEVE:
        offer(m, f, parent)
    return done


@kernel
def drive(
    m: Block, f: Block, ids: Block, starts: Block, at: Block, nexts: Block, traits: Block, hits: Block, path: Block
) -> int:
    """Do what the header asks for; gives 0.

    m, f
        The policy's memory.
    ids
        Blocks of all requests; of one operation: the block, its parent, whether it has one, a number, and
        whether a new request begins.
    starts
        Where each request begins in ids, one more than requests.
    at, traits
        Time and ``2 * content + is_partial`` of each request.
    nexts
        When each block is used next (Belady alone).
    hits
        hits[0] is the number of requests; behind it the leading resident blocks of each, or the operation's answer.
    path
        Room for the slots of the longest request.
    """
    if m[OP] == REQUEST:
        return serve(m, f, ids, starts, at, nexts, traits, hits, path)
    if ids[4] != 0:
        tick(m, f, float(at[0]))
    hits[1] = operate(m, f, ids)
    return 0
