"""The policies that score: evictable leaves in a heap, the least retention value goes, ghosts keep their history."""

from __future__ import annotations

from stabilitykit.kernels import kernel
from stabilitykit.kernels.pointers import Block, offset_f8, offset_i8
from stabilitykit.mitigations.kv.heap import heap_down, heap_push, heap_remove, is_before
from stabilitykit.mitigations.kv.hybrid_rank import note_moved, rank_residents, retention
from stabilitykit.mitigations.kv.layout import (
    ADMITTED,
    BELADY,
    BORN,
    BYPASS,
    CAPACITY,
    CLASS,
    CONTENT,
    COUNT,
    DEPTH,
    FIFO,
    FLOATS,
    FRESH,
    GROWN,
    HEADER,
    HEAP,
    HEAPED,
    HYBRID,
    K1,
    K2,
    KEYED,
    KIDS,
    LEVEL,
    LFU,
    LRU_K,
    MARK_WORDS,
    MARKS,
    NOW,
    OP,
    PARENT,
    PINS,
    POLICY,
    POS,
    RANK,
    REFERENCES,
    REQUEST,
    RESIDENT,
    SERIAL,
    SIZE,
    SLRU,
    STAMP,
    STATE,
    SURVIVAL,
    TIME,
    VISIT,
    WORDS,
    K,
)  # fmt: skip
from stabilitykit.mitigations.kv.survival_index import level_behind, note_end, note_visit, worth
from stabilitykit.mitigations.kv.table import find, forget, leave, obtain, release, settle

RENEWAL = 4
"""Requests after which survival looks at all leaves again; by then only the youngest have changed their bucket."""

__all__ = ["offer", "score_admit", "score_drop", "score_evict", "score_request", "score_touch"]


@kernel
def set_key(m: Block, f: Block, s: int) -> int:
    """Write by what a node is compared; Belady's key was written when it was used; gives 0."""
    policy, k = int(m[POLICY]), int(m[K])
    n, count = offset_f8(f, int(m[FLOATS]) + s * (REFERENCES + k)), int(m[int(m[MARKS]) + s * MARK_WORDS + COUNT])
    last = float(n[REFERENCES])
    n[K2] = last
    if policy == FIFO:
        n[K1] = n[BORN]
        n[K2] = 0.0
    elif policy == LFU:
        n[K1] = float(count)
    elif policy == LRU_K:
        n[K1] = n[REFERENCES + k - 1]
    elif policy == SLRU:
        n[K1] = 1.0 if count >= 2 else 0.0
    elif policy == HYBRID:
        n[K1] = retention(m, f, s)
    elif policy == SURVIVAL:
        n[K1] = worth(m, f, int(m[int(m[MARKS]) + s * MARK_WORDS + CLASS]), float(m[SERIAL]) - last)
    return 0


@kernel
def offer(m: Block, f: Block, s: int) -> int:
    """Let a node be evicted if nothing holds it; gives 0."""
    d = offset_i8(m, HEADER + s * WORDS)
    if d[STATE] == RESIDENT and d[KIDS] == 0 and d[PINS] == 0 and m[int(m[MARKS]) + s * MARK_WORDS + POS] == 0:
        set_key(m, f, s)
        heap_push(m, f, s)
    return 0


@kernel
def renew_keys(m: Block, f: Block) -> int:
    """Bring the keys that change with time up to this request: hybrid's in each, survival's after four; gives 0."""
    wait = 1 if m[POLICY] == HYBRID else RENEWAL if m[POLICY] == SURVIVAL else 0
    if wait == 0 or int(m[SERIAL]) - int(m[KEYED]) < wait:
        return 0
    m[KEYED] = m[SERIAL]
    if m[POLICY] == HYBRID:
        rank_residents(m, f)
    n = int(m[HEAPED])
    for at in range(n):
        set_key(m, f, int(m[int(m[HEAP]) + at]))
    for at in range(n // 2 - 1, -1, -1):
        heap_down(m, f, at)
    return 0


@kernel
def retire(m: Block, f: Block, s: int) -> int:
    """Make a loose node a ghost, or forget it; gives 0."""
    gone = release(m, s)
    if gone != 0:
        if m[POLICY] == SURVIVAL:
            note_end(m, f, gone, 0)
        forget(m, gone)
    return 0


@kernel
def score_drop(m: Block, f: Block, s: int) -> int:
    """Evict this node; what it stood on may go now, unless it belongs to the request being served; gives 1."""
    heap_remove(m, f, s)
    parent = leave(m, s)
    retire(m, f, s)
    if parent != 0 and (m[OP] != REQUEST or m[HEADER + parent * WORDS + STAMP] != m[SERIAL]):
        offer(m, f, parent)
    return 1


@kernel
def drop_top(m: Block, f: Block) -> int:
    """Evict the top of the heap; gives 0 when it is empty."""
    return score_drop(m, f, int(m[int(m[HEAP])])) if m[HEAPED] > 0 else 0


@kernel
def score_evict(m: Block, f: Block, wanted: int) -> int:
    """Evict up to so many nodes; gives how many went."""
    renew_keys(m, f)
    done = 0
    while done < wanted and drop_top(m, f) != 0:
        done += 1
    return done


@kernel
def note_use(m: Block, f: Block, s: int, depth: int, following: float, content: int, is_partial: int) -> int:
    """Count a use of a node, at most one a request; gives 0."""
    k = int(m[K])
    d, e = offset_i8(m, HEADER + s * WORDS), offset_i8(m, int(m[MARKS]) + s * MARK_WORDS)
    n = offset_f8(f, int(m[FLOATS]) + s * (REFERENCES + k))
    if d[STAMP] == m[SERIAL]:
        return 0
    is_new = d[STAMP] == 0
    d[STAMP] = m[SERIAL]
    if is_new:
        e[COUNT] = 0
        e[VISIT] = 0
        e[LEVEL] = m[GROWN]
        for i in range(k):
            n[REFERENCES + i] = -1.0
    for i in range(k - 1, 0, -1):
        n[REFERENCES + i] = n[REFERENCES + i - 1]
    n[REFERENCES] = float(m[SERIAL])
    n[TIME] = f[NOW]
    n[DEPTH] = float(depth)
    n[RANK] = 1.0
    e[COUNT] = int(e[COUNT]) + 1
    e[CONTENT] = content
    if m[POLICY] == BELADY:
        n[K1] = -following
    elif m[POLICY] == HYBRID:
        note_moved(m, s)
    elif m[POLICY] == SURVIVAL:
        note_end(m, f, s, 1)
        note_visit(m, s, is_partial)
    return 0


@kernel
def make_room(m: Block, f: Block, s: int) -> int:
    """See to a free place for a node; gives 0 when the cache is better without it, or full of what must stay."""
    if m[SIZE] < m[CAPACITY]:
        return 1
    if m[HEAPED] == 0:
        return 0
    renew_keys(m, f)
    if m[BYPASS] != 0:
        set_key(m, f, s)
        if not is_before(m, f, int(m[int(m[HEAP])]), s):
            return 0
    return drop_top(m, f)


@kernel
def score_admit(m: Block, f: Block, key: int, parent: int, is_wanted: int, following: float, traits: int) -> int:
    """Use a block that is not resident, and make it so behind its parent if wanted and worth it.

    Gives its slot, 0 when it was not admitted; traits is ``2 * content + is_partial``.
    """
    s = obtain(m, key)
    depth, width = 0, REFERENCES + int(m[K])
    if parent != 0:
        depth = int(f[int(m[FLOATS]) + parent * width + DEPTH]) + 1
    note_use(m, f, s, depth, following, traits >> 1, traits & 1)
    m[GROWN] = level_behind(m, s)
    if m[HEADER + s * WORDS + STATE] == RESIDENT:
        heap_remove(m, f, s)
        return s
    if is_wanted == 0 or make_room(m, f, s) == 0:
        retire(m, f, s)
        return 0
    settle(m, s, parent)
    f[int(m[FLOATS]) + s * width + BORN] = float(m[SERIAL])
    m[ADMITTED] = 1
    if m[POLICY] == HYBRID:
        note_moved(m, s)
    return s


@kernel
def score_touch(m: Block, f: Block, s: int) -> int:
    """Use a resident node and all that it stands on; gives 0."""
    tail, width = s, REFERENCES + int(m[K])
    while s != 0:
        heap_remove(m, f, s)
        depth = int(f[int(m[FLOATS]) + s * width + DEPTH])
        note_use(m, f, s, depth, 0.0, int(m[int(m[MARKS]) + s * MARK_WORDS + CONTENT]), 0)
        s = int(m[HEADER + s * WORDS + PARENT])
    offer(m, f, tail)
    return 0


@kernel
def score_request(m: Block, f: Block, ids: Block, nexts: Block, path: Block, first: int, last: int, traits: int) -> int:
    """Serve one path of blocks; gives its leading blocks that were resident.

    The last block alone can be partial. What a request uses stays until it is served.
    """
    j, tail = first, 0
    while j < last and find(m, int(ids[j])) != 0:
        j += 1
    m[FRESH] = last - j
    m[GROWN] = 0
    j = first
    while j < last:
        s = find(m, int(ids[j]))
        if s == 0 or m[HEADER + s * WORDS + STATE] != RESIDENT:
            break
        heap_remove(m, f, s)
        part = traits & 1 if j == last - 1 else 0
        note_use(m, f, s, j - first, float(nexts[j]), traits >> 1, part)
        m[GROWN] = level_behind(m, s)
        path[j - first] = s
        tail = s
        j += 1
    hits, is_wanted = j - first, 1
    while j < last:
        part = traits & 1 if j == last - 1 else 0
        s = score_admit(m, f, int(ids[j]), tail, is_wanted, float(nexts[j]), traits - (traits & 1) + part)
        path[j - first] = s
        if s == 0:
            is_wanted = 0
        else:
            tail = s
        j += 1
    for k in range(last - first):
        if path[k] != 0:
            offer(m, f, int(path[k]))
    return hits
