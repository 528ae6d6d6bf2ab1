"""Cache policies against cachetools on 64-bit block ids: conversations over a prefix tree."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from benchmarks.measure import Figure, significant, times
from stabilitykit.mitigations.kv import KVPolicy

CAPACITY, REQUESTS, FRESH, WAITING = 4_000, 4_000, 0.65, 200
"""Two thirds of the requests begin a conversation, so that as in the public trace two blocks in three are new ones."""


def trace():
    """Conversations of about 24 blocks; one that goes on is among the latest and adds a few."""
    rng = np.random.default_rng(5)
    shared: list[int] = rng.integers(-(2**63), 2**63, 3).tolist()
    paths: list[list[int]] = []
    blocks: list[int] = []
    starts = [0]
    for _ in range(REQUESTS):
        if not paths or rng.random() < FRESH:
            path = [*shared, *rng.integers(-(2**63), 2**63, int(rng.integers(1, 40))).tolist()]
        else:
            path = paths[-1 - int(rng.integers(min(len(paths), WAITING)))]
            path = [*path, *rng.integers(-(2**63), 2**63, int(rng.integers(1, 6))).tolist()]
        paths.append(path)
        blocks += path
        starts.append(len(blocks))
    return blocks, starts


def run() -> list[Figure]:
    from cachetools import LRUCache

    blocks, starts = trace()
    flat, at = np.array(blocks, np.int64), np.array(starts, np.int64)
    hits = {}

    def ours(policy):
        def batch():
            hits[policy] = int(KVPolicy(policy, capacity=CAPACITY).run(flat, at).sum())

        return batch

    def peer():
        """The same requests, block by block, tail first so that heads outlive what follows them."""
        cache: LRUCache[int, None] = LRUCache(CAPACITY)
        found = 0
        for first, last in pairwise(starts):
            for block in reversed(blocks[first:last]):
                if block in cache:
                    cache[block]
                    found += 1
                else:
                    cache[block] = None
        hits["cachetools"] = found

    lru, survival, theirs = times([ours("lru"), ours("survival"), peer], 5)
    assert hits["lru"] == hits["cachetools"], hits
    each = [len(blocks) / t * 1e3 for t in (lru, survival, theirs)]
    note = f"{len(blocks):,} blocks, {CAPACITY:,} cached; {each[2]:.2f} million blocks a second with cachetools"
    return [
        Figure(
            "kv_lru", "KV blocks: leaf-LRU / cachetools LRU, 64-bit ids", significant(lru / theirs), 0.05,
            f"{each[0]:.1f} million blocks a second; {note}",
        ),
        Figure(
            "kv_survival", "KV blocks: survival / cachetools LRU, 64-bit ids", significant(survival / theirs), 0.5,
            f"{each[1]:.1f} million blocks a second; {note}",
        ),
    ]  # fmt: skip
