"""Block ids: 64 bits are one block, however they are written down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.errors import UsageError
from stabilitykit.kernels.block_ids import signed_id, signed_ids
from stabilitykit.mitigations.directives import EvictKv
from stabilitykit.mitigations.kv import KVCache, KVPolicy, TierMap, carry_out
from stabilitykit.mitigations.kv.trace import read_trace
from stabilitykit.sources.block_tracker import BlockTracker

IDS = st.integers(-(2**63), 2**64 - 1)


@given(st.lists(IDS, max_size=20))
def test_the_same_bits(ids):
    """One by one, as a list or as an array of either kind, ids are the signed number of their 64 bits."""
    wanted = [int.from_bytes((one % 2**64).to_bytes(8, "little"), "little", signed=True) for one in ids]
    assert [signed_id(one) for one in ids] == wanted
    assert signed_ids(ids).tolist() == wanted
    assert signed_ids(iter(ids)).tolist() == wanted
    assert signed_ids(np.array([one % 2**64 for one in ids], np.uint64)).tolist() == wanted
    words: list[Any] = [np.uint64(one % 2**64) for one in ids]
    assert signed_ids(words).tolist() == wanted


@pytest.mark.capability("issue 5 §2: unsigned 64-bit block ids are evicted, aged and tiered as signed ones are")
@given(st.lists(st.integers(2**63, 2**64 - 1), min_size=1, max_size=8, unique=True))
def test_the_doors_agree(tmp_path_factory, ids):
    """Policy, tiers, tracker and traces know a block by its unsigned id, and by the signed one."""
    cache, tracker = KVCache(KVPolicy("lru", capacity=64)), BlockTracker(method="idle", window=2)
    cache.policy.request(ids)
    tracker.touch("a", ids)
    for _ in range(3):
        tracker.touch("b", [1])
    assert [tracker.age(block) for block in ids] == [1.0] * len(ids)
    assert [tracker.tier(block) for block in ids] == [2] * len(ids)
    cache.tiers.update({block: tracker.age(block) for block in ids})
    assert {cache.tiers.tier(block) for block in (*ids, *map(signed_id, ids))} == {2}
    done = carry_out(EvictKv(), cache)
    assert done.details == {"evicted": tuple(map(signed_id, reversed(ids))), "kept": 0}
    assert len(cache.policy) == 0
    assert cache.tiers.counts == (0, 0, 0)
    tracker.evict(ids[-1])
    assert len(tracker) == len(ids)
    path = tmp_path_factory.mktemp("trace") / "trace.txt"
    path.write_text(" ".join(map(str, [*ids, *map(signed_id, ids)])), encoding="utf-8")
    assert read_trace(path).blocks.tolist() == [signed_id(block) for block in ids]


def test_many_at_once():
    """Requests in one array, or a list of large ids, are those of one request after the other."""
    ids = [2**64 - 1, 2**64 - 2, 2**64 - 1]
    starts = np.array([0, 2, 3])
    for blocks in (ids, np.array(ids, np.uint64)):
        cache = KVPolicy("lru", capacity=8)
        assert cache.run(blocks, starts).tolist() == [0, 1]  # type: ignore[arg-type]
        assert sorted(cache) == [-2, -1]
    tiers = TierMap()
    tiers.update({2**64 - 1: 0.9})
    tiers.forget(-1)
    assert tiers.counts == (0, 0, 0)


@pytest.mark.parametrize("wrong", [1.5, 1.0, "1", None, np.float64(2.0), [1]])
def test_what_is_no_whole_number(wrong):
    """It is refused at every door: cut off, 1.5 would be block 1."""
    tiers, tracker = TierMap(), BlockTracker()
    doors = [
        lambda: signed_id(wrong),
        lambda: signed_ids([1, wrong]),
        lambda: signed_ids(np.array([1.5])),
        lambda: signed_ids(np.array([[1]])),
        lambda: tiers.tier(wrong),
        lambda: tracker.age(wrong),
        lambda: tracker.touch("a", [1, wrong]),
        lambda: tracker.evict(wrong),
    ]
    if wrong != [1]:
        doors.append(lambda: tiers.update({wrong: 0.5}))
    for door in doors:
        with pytest.raises(UsageError, match=r"whole numbers? of 64 bits"):
            door()
    assert (tiers.counts, len(tracker)) == ((0, 0, 0), 0)
