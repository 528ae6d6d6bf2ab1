from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.errors import UsageError
from stabilitykit.mitigations.kv import FRESHNESS, POLICIES, Content, KVPolicy
from tests.naive.kv_policies import NaiveCache, NaiveList

SCORED = ["survival", "lru-k", "hybrid", "slru", "fifo", "lfu"]
EVERY_POLICY = [*SCORED, "lru", "sieve"]
CONTENTS = [*FRESHNESS]


def block_of(path: tuple[int, ...]) -> int:
    """Name a block by all that comes before it, as a prefix cache does; some ids are negative, all are large."""
    return hash((*path, 7)) | 1


PATHS = st.lists(st.integers(0, 2), min_size=1, max_size=6).map(
    lambda way: [block_of(tuple(way[: i + 1])) for i in range(len(way))]
)
REQUESTS = st.lists(
    st.tuples(PATHS, st.floats(-5, 40), st.sampled_from(CONTENTS), st.booleans()), min_size=1, max_size=40
)
SETTINGS: dict[str, Any] = {"k": 2, "alpha": 0.4, "decay": 0.1, "every": 5, "prior": 3.0}


def pair(policy: str, capacity: int, classes: Any, ghosts: int | None = None) -> tuple[KVPolicy, NaiveCache]:
    """Make the policy and its definition, with ghosts for twice the capacity unless told."""
    ghosts = 2 * capacity if policy == "survival" and ghosts is None else ghosts
    cache = KVPolicy(policy, capacity=capacity, ghosts=ghosts, classes=classes, **SETTINGS)  # type: ignore[arg-type]
    twin = NaiveCache(
        policy, capacity, cache.ghosts, classes=classes, may_refuse=policy in ("survival", "belady"), **SETTINGS
    )
    return cache, twin


def is_closed(cache: KVPolicy) -> bool:
    """Tell whether every resident block stands on resident ones."""
    there = set(cache)
    return all((above := cache.parent(block)) is None or above in there for block in there)


@pytest.mark.capability("issue 5 §2: every policy evicts what its definition says, leaf first")
@pytest.mark.parametrize("policy", SCORED)
@given(st.integers(1, 12), REQUESTS, st.sampled_from(["uses", "prompts"]), st.none() | st.integers(0, 30))
def test_requests(policy, capacity, requests, classes, ghosts):
    """Hits, evictions in their order and residents are those of the definition; the rest is always a prefix tree."""
    cache, twin = pair(policy, capacity, classes, ghosts)
    for path, at, content, is_partial in requests:
        kind = (FRESHNESS[content].weight, FRESHNESS[content].ttl_s)
        wanted = twin.request(path, at, kind, is_partial, [0.0] * len(path))
        assert cache.request(path, at, content, is_partial) == wanted
        assert list(cache.evicted) == twin.evicted
        assert set(cache) == set(twin.resident)
        assert is_closed(cache)
        assert len(cache) <= capacity
        assert cache.remembered == len(twin.ghosts) <= (2 * capacity if ghosts is None else ghosts)


@pytest.mark.capability("issue 5 §2: however many blocks pass, ghosts and their memory stay bounded")
@pytest.mark.parametrize("policy", EVERY_POLICY)
def test_bounded_ghosts(policy):
    """A hundred thousand blocks that never come back: the bound is reached, not passed, and nothing grows."""
    cache = KVPolicy(policy, capacity=8)
    size = cache._memory.m.nbytes + cache._memory.f.nbytes
    cache.run(np.arange(100_000), np.arange(0, 100_001, 4))
    assert (
        cache.remembered == cache.ghosts == {"survival": 65_536, "lru-k": 16, "hybrid": 16, "slru": 16}.get(policy, 0)
    )
    assert size == cache._memory.m.nbytes + cache._memory.f.nbytes


@pytest.mark.parametrize("ghosts", [1 << 10, 50_000, 1 << 16, 1 << 20])
def test_bytes_of_a_ghost(ghosts):
    """What the settings promise of memory holds."""
    without, with_them = (KVPolicy(capacity=64, ghosts=count)._memory for count in (0, ghosts))
    assert with_them.m.nbytes + with_them.f.nbytes - without.m.nbytes - without.f.nbytes <= 400 * ghosts


@pytest.mark.parametrize("policy", ["lru", "sieve"])
@given(st.integers(1, 12), st.lists(PATHS, max_size=40))
def test_lists(policy, capacity, requests):
    """LRU and SIEVE keep what a plain list keeps, in the same order of evictions."""
    cache, twin = KVPolicy(policy, capacity=capacity), NaiveList(policy, capacity)
    for path in requests:
        assert cache.request(path) == twin.request(path)
        assert list(cache.evicted) == twin.evicted
        assert set(cache) == set(twin.parents)
        assert is_closed(cache)


@st.composite
def operations(draw):
    """Give what a serving layer does: touch, admit behind a parent, evict, pin and unpin."""
    steps = []
    for _ in range(draw(st.integers(1, 40))):
        path = draw(PATHS)
        op = draw(st.sampled_from(["admit", "admit", "admit", "touch", "evict", "pin", "unpin"]))
        steps.append((op, path[-1], path[-2] if len(path) > 1 else None, draw(st.integers(1, 3))))
    return steps


@pytest.mark.capability("issue 5 §2: KVPolicy is driven block by block: admit, touch, evict, pin")
@pytest.mark.parametrize("policy", EVERY_POLICY)
@given(st.integers(1, 8), operations())
def test_operations(policy, capacity, steps):
    """Block by block it does what the definition does; what is pinned stays, and so does all that it stands on."""
    twin: Any
    if policy in SCORED:
        cache, twin = pair(policy, capacity, "prompts")
    else:
        cache, twin = KVPolicy(policy, capacity=capacity), NaiveList(policy, capacity)
    pinned: dict[int, int] = {}
    for op, block, parent, number in steps:
        there = twin.resident if policy in SCORED else twin.parents
        if policy in SCORED and op not in ("pin", "unpin"):
            twin.tick(-np.inf)
        if op == "admit":
            extra = ((1.0, np.inf),) if policy in SCORED else ()
            assert cache.admit(block, parent) == twin.admit(block, parent, *extra)
        elif op == "touch":
            assert cache.touch(block) == twin.touch(block)
        elif op == "evict":
            assert cache.evict(number) == tuple(twin.evict(number))
        else:
            step = 1 if op == "pin" else -1
            is_possible = block in there and (op == "pin" or pinned.get(block, 0) > 0)
            assert (cache.pin if op == "pin" else cache.unpin)(block) == is_possible
            if is_possible:
                pinned[block] = pinned.get(block, 0) + step
                if policy in SCORED:
                    twin.pin(block, step)
                else:
                    twin.pins[block] = pinned[block]
        assert set(cache) == set(there)
        assert {b for b, n in pinned.items() if n} <= set(cache)
        assert is_closed(cache)


@pytest.mark.parametrize("policy", EVERY_POLICY)
@given(st.integers(1, 8), REQUESTS)
def test_plain_python(policy, capacity, requests):
    """Without a compiler the same happens, bit for bit."""
    both = [KVPolicy(policy, capacity=capacity, ghosts=9, is_compiled=use, **SETTINGS) for use in (True, False)]
    for path, at, content, is_partial in requests[:12]:
        assert both[0].request(path, at, content, is_partial) == both[1].request(path, at, content, is_partial)
    assert (both[0]._memory.m == both[1]._memory.m).all()
    assert both[0]._memory.f.tobytes() == both[1]._memory.f.tobytes()


@pytest.mark.capability("issue 5 §2: the hybrid with K = 1 and a = 0 is LRU")
@given(st.integers(1, 12), st.lists(PATHS, max_size=40))
def test_hybrid_is_lru(capacity, requests):
    """One reference and no freshness: the order of last use."""
    lru = KVPolicy("lru", capacity=capacity)
    others = [KVPolicy("hybrid", capacity=capacity, k=1, alpha=0.0), KVPolicy("lru-k", capacity=capacity, k=1)]
    for path in requests:
        hits = lru.request(path)
        for other in others:
            assert other.request(path) == hits
            assert set(other) == set(lru)


@pytest.mark.capability("issue 5 §2: in flat mode LRU is an ordered dictionary")
@given(st.integers(1, 12), st.lists(st.integers(-9, 9), max_size=120))
def test_flat_lru(capacity, blocks):
    """Requests of one block each, no tree."""
    cache, plain, hits = KVPolicy("lru", capacity=capacity), OrderedDict[int, None](), []
    for block in blocks:
        hits.append(int(block in plain))
        plain[block] = None
        plain.move_to_end(block)
        if len(plain) > capacity:
            plain.popitem(last=False)
        assert cache.request([block]) == hits[-1]
    assert set(cache) == set(plain)
    again = KVPolicy("lru", capacity=capacity)
    assert again.run(np.array(blocks, np.int64), np.arange(len(blocks) + 1)).tolist() == hits


@given(st.integers(1, 8), st.lists(PATHS, max_size=30))
def test_belady_is_a_bound(capacity, requests):
    """Who knows the future, and may refuse, hits at least as often as each of the others."""
    flat = np.array([block for path in requests for block in path], np.int64)
    starts = np.cumsum([0, *map(len, requests)])
    nexts = np.full(len(flat), np.inf)
    seen: dict[int, int] = {}
    for r in range(len(requests) - 1, -1, -1):
        for k in range(starts[r], starts[r + 1]):
            nexts[k] = seen.get(int(flat[k]), np.inf)
        seen |= dict.fromkeys(requests[r], r)
    best = KVPolicy("belady", capacity=capacity).run(flat, starts, nexts=nexts).sum()
    twin = NaiveCache("belady", capacity, 0, may_refuse=True)
    assert best == sum(
        twin.request(path, 0.0, (1.0, np.inf), False, nexts[starts[r] : starts[r + 1]].tolist())
        for r, path in enumerate(requests)
    )


@pytest.mark.capability("issue 5 §2: freshness by content type with a time to live; what has expired goes first")
def test_time_to_live():
    """A price is expired after 30 s, however often it was used; a profile is not."""
    cache = KVPolicy("hybrid", capacity=3)
    for at in (0.0, 1.0, 2.0):
        cache.request([1], at, "price")
    cache.request([2], 3.0, "profile")
    cache.request([3], 4.0, "stock")
    cache.request([4], 33.0)
    assert cache.evicted == (1,)
    cache.request([5], 34.0)
    assert cache.evicted != (3,)
    cache.request([6], 70.0)
    assert 3 not in cache


def test_backwards_clock_stands_still():
    """A time before the last one counts as the last one: nothing gets younger, and nothing expires."""
    forth, back = (KVPolicy("hybrid", capacity=2) for _ in range(2))
    for cache, late in ((forth, 20.0), (back, -1e9)):
        cache.request([1], 10.0, "price")
        cache.request([2], 20.0)
        cache.request([3], late)
    assert set(forth) == set(back)


def test_ids_of_64_bits():
    """Unsigned ids are read as signed, whatever they come in."""
    high = 2**64 - 5
    cache = KVPolicy("lru", capacity=4)
    assert cache.request([high, 3]) == 0
    assert (high in cache, -5 in cache, cache.request(np.array([-5, 3]))) == (True, True, 2)
    assert KVPolicy(capacity=1).request([]) == 0


def test_drop_only_leaves():
    """One block can be named; not one that others stand on, is pinned, or is not there."""
    for policy in EVERY_POLICY:
        cache = KVPolicy(policy, capacity=4)  # type: ignore[arg-type]
        cache.request([1, 2])
        cache.request([1, 3])
        assert (cache.drop(1), cache.drop(9), cache.pin(3), cache.drop(3), cache.drop(2)) == (
            False, False, True, False, True,
        )  # fmt: skip
        assert (cache.evicted, cache.unpin(3), cache.drop(3), cache.drop(1), len(cache)) == ((2,), True, True, True, 0)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("policy", {"policy": "mru"}), ("classes", {"classes": "x"}), ("capacity", {"capacity": 0}), ("k", {"k": 0}),
        ("alpha", {"alpha": 1.5}), ("content", {"contents": {str(n): Content() for n in range(9)}}),
    ],
)  # fmt: skip
def test_wrong_settings(name, wrong):
    """Settings that cannot be are refused, by name."""
    with pytest.raises(UsageError, match=name):
        KVPolicy(**{"capacity": 4, **wrong})


@pytest.mark.parametrize("wrong", [{"capacity": 1.5}, {"k": 1.5}, {"every": 2.5}, {"ghosts": -1}, {"ghosts": 3.5}])
def test_settings_are_whole(wrong):
    """Half a block is none."""
    with pytest.raises(UsageError, match="whole numbers"):
        KVPolicy("hybrid", **{"capacity": 4, **wrong})


@pytest.mark.parametrize("policy", ["lru", "hybrid", "survival"])
@pytest.mark.parametrize(
    ("starts", "more", "what"),
    [
        ([-5_000_000, 3], {}, "starts"), ([0, 100], {}, "starts"), ([2, 1, 3], {}, "starts"), ([0, 5, 3], {}, "starts"),
        ([], {}, "starts"), ([0, 2**63 - 1, -(2**63), -1, 3], {}, "starts"),
        ([[0, 3]], {}, "starts"), ([0.0, 3.0], {}, "starts"), (3, {}, "starts"),
        ([0, 2, 3], {"at_s": [1.0]}, "at_s"), ([0, 3], {"at_s": [[1.0]]}, "at_s"), ([0, 3], {"nexts": [1.0]}, "nexts"),
        ([0, 2, 3], {"traits": [0]}, "traits"), ([0, 3], {"traits": [0, 0]}, "traits"),
        ([0, 3], {"traits": [2**40]}, "traits"), ([0, 3], {"traits": [-1]}, "traits"),
        ([0, 3], {"traits": [8]}, "traits"), ([0, 3], {"traits": [0.5]}, "traits"),
    ],
)  # fmt: skip
def test_run_reads_nothing_else(policy, starts, more, what):
    """Arrays that do not fit each other are refused before anything is read; the cache is as it was."""
    cache = KVPolicy(policy, capacity=4)
    with pytest.raises(UsageError, match=what):
        cache.run(np.array([1, 2, 3]), np.array(starts), **{name: np.array(value) for name, value in more.items()})
    assert len(cache) == 0


@given(st.lists(st.integers(-3, 6), max_size=4), st.lists(st.integers(-1, 9), max_size=3))
def test_run_serves_what_fits(starts, traits):
    """Any starts and traits: all requests are served, or none is."""
    cache = KVPolicy("hybrid", capacity=4)
    fits = bool(starts) and starts == sorted(starts) and starts[0] >= 0 and starts[-1] <= 3
    fits = fits and len(traits) == len(starts) - 1 and all(0 <= one < 8 for one in traits)
    if fits:
        assert len(cache.run(np.array([1, 2, 3]), np.array(starts), traits=np.array(traits, int))) == len(traits)
        return
    with pytest.raises(UsageError):
        cache.run(np.array([1, 2, 3]), np.array(starts, int), traits=np.array(traits, int))


def test_run_takes_any_layout():
    """Strided arrays of any integer type are the same trace."""
    blocks: Any = np.array([1, 0, 2, 0, 1, 0])[::2]
    starts: Any = np.array([0, 9, 2, 9, 3, 9], np.uint8)[::2]
    traits: Any = np.zeros(4, np.int8)[::2]
    at_s = np.array([1.0, 9.0, 2.0, 9.0])[::2]
    assert KVPolicy("hybrid", capacity=4).run(blocks, starts, at_s, traits).tolist() == [0, 1]


@pytest.mark.parametrize("ids", [np.array([1.0, 2.0]), [1.5], ["1"], [None], np.zeros((2, 2), int)])
def test_ids_are_whole(ids):
    """Ids that are no whole numbers are refused, not cut off: two blocks would become one."""
    cache: Any = KVPolicy("lru", capacity=4)
    with pytest.raises(UsageError, match="block ids"):
        cache.request(ids)
    with pytest.raises(UsageError, match="block ids"):
        cache.run(ids, np.array([0, 1]))
    for call in (cache.admit, cache.touch, cache.drop, cache.pin, cache.unpin, cache.idle, cache.parent):
        with pytest.raises(UsageError, match="block id"):
            call(1.5)
    with pytest.raises(UsageError, match="block id"):
        cache.admit(1, 1.5)
    assert len(cache) == 0


def test_every_policy_has_its_definition():
    """The tests above cover every policy there is."""
    assert {*EVERY_POLICY, "belady"} == set(POLICIES)


@pytest.mark.parametrize("ask", [lambda p: p.request([1], content="unheard-of"), lambda p: p.admit(1, content="x")])
def test_a_content_type_nobody_declared(ask):
    """It is refused with the names there are, and nothing is admitted."""
    policy = KVPolicy("lru", capacity=4)
    with pytest.raises(UsageError, match=r"content is one of ''"):
        ask(policy)
    assert 1 not in policy
