from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.actions import ACTIONS, Action
from stabilitykit.errors import UsageError
from stabilitykit.mitigations.directives import MITIGATIONS, ResetContext
from stabilitykit.mitigations.kv import KVCache, KVPolicy, Precision, TierMap, carry_out
from stabilitykit.mitigations.kv.acting import CARRIERS


def action(name: str, **params: Any) -> Action:
    """Make an action with its defaults, as a decision does."""
    return Action(name, {p.name: p.default for p in ACTIONS[name].params} | params)


def cache_of(*paths: list[int], **more: Any) -> KVCache:
    """Fill a cache with paths."""
    cache = KVCache(KVPolicy("lru", capacity=64), **more)
    for path in paths:
        cache.policy.request(path)
    return cache


@pytest.mark.capability("issue 5 §2: tiers by aging, with hysteresis")
@given(st.lists(st.floats(0, 1), max_size=60), st.floats(0, 0.15))
def test_tiers(ages, margin):
    """A block's tier is that of its age, except within the margin of a border, where it stays what it was."""
    tiers, before = TierMap(margin), 0
    for age in ages:
        moves = tiers.update({1: age})
        now = tiers.tier(1)
        plain = 2 if age >= 0.7 else 1 if age >= 0.3 else 0
        assert [(m.before, m.after) for m in moves] == ([(before, now)] if now != before else [])
        if all(abs(age - border) > margin for border in (0.3, 0.7)):
            assert now == plain
        assert min(before, plain) <= now <= max(before, plain)
        before = now


def test_borders_are_half_open():
    """Without a margin: .3 is the second tier, .7 the last, and 1 belongs to it."""
    tiers = TierMap(0.0)
    tiers.update({1: 0.0, 2: math.nextafter(0.3, 0), 3: 0.3, 4: math.nextafter(0.7, 0), 5: 0.7, 6: 1.0})
    assert [tiers.tier(block) for block in range(1, 7)] == [0, 0, 1, 1, 2, 2]


def test_no_age_keeps():
    """An unknown age keeps without a word; what cannot be an age keeps and is counted."""
    tiers = TierMap()
    tiers.update({1: 0.9})
    assert tiers.update({1: None, 2: None}) == ()
    assert tiers.update({1: math.nan, 2: -1.0, 3: math.inf}) == ()
    assert (tiers.tier(1), tiers.tier(2), tiers.unknown, tiers.counts) == (2, 0, 3, (2, 0, 1))
    with pytest.raises(UsageError, match="margin"):
        TierMap(0.2)


@pytest.mark.capability("issue 5 §2: evict_kv evicts a share of a tier, leaves first, and says what went")
def test_evict():
    """Of seven blocks five are marked; one of them is pinned, and one carries a block that is not marked."""
    cache = cache_of([1, 2, 3], [1, 4, 5], [6, 7])
    cache.tiers.update(dict.fromkeys([1, 2, 3, 6, 7], 0.9) | {4: 0.1, 5: 0.1, 99: 0.9})
    cache.policy.pin(7)
    half = carry_out(action("evict_kv", share=0.2), cache)
    assert (half.is_done, half.details) == (True, {"evicted": (3,), "kept": 4})
    rest = carry_out(action("evict_kv"), cache)
    assert (rest.is_done, rest.details) == (True, {"evicted": (2,), "kept": 3})
    none = carry_out(action("evict_kv"), cache)
    assert (none.is_done, none.details["why"]) == (False, "each block of that tier is pinned or carries one that stays")
    assert sorted(cache.policy) == [1, 4, 5, 6, 7]
    assert carry_out(action("evict_kv", tier=1), cache).details["why"] == "no block of that tier is cached"


def test_why_nothing_was_evicted():
    """A share of 0 asks for none, and a block that carries another tier's is no leaf: neither is said to be in use."""
    cache = cache_of([1, 2])
    cache.tiers.update({1: 0.9, 2: 0.1})
    none = carry_out(action("evict_kv", share=0.0), cache)
    assert (none.is_done, none.details) == (False, {"evicted": (), "kept": 1, "why": "a share of 0 asks for none"})
    carrying = carry_out(action("evict_kv"), cache)
    assert (carrying.is_done, carrying.details["kept"]) == (False, 1)
    assert carrying.details["why"] == "each block of that tier is pinned or carries one that stays"
    assert carry_out(action("evict_kv", share=0.0, tier=1), cache).details["why"] == "no block of that tier is cached"


@given(st.sampled_from([("evict_kv", {"share": 0.5}), ("tier_kv", {"tier": 2}), ("quantize_kv", {"bits": 8})]))
def test_a_directive_does_what_its_action_does(asked):
    """What a host is handed and what a decision holds are carried out alike."""
    name, params = asked
    done = []
    for given_as in (action(name, **params), MITIGATIONS[name](**params)):
        cache = cache_of([1, 2, 3], move=lambda block, tier: True)
        cache.tiers.update({1: 0.1, 2: 0.9, 3: 0.9})
        done.append(carry_out(given_as, cache))
    assert done[0] == done[1]
    assert done[0].is_done


@pytest.mark.capability("issue 5 §2: tier_kv moves what its age puts into a tier, and says what moved")
def test_tier():
    """The host refuses one block; without a way to move there is nothing to do."""
    moved: list[tuple[int, int]] = []

    def move(block: int, tier: int) -> bool:
        moved.append((block, tier))
        return block != 3

    cache = cache_of([1, 2, 3], move=move)
    cache.tiers.update({1: 0.1, 2: 0.5, 3: 0.5, 99: 0.5})
    done = carry_out(action("tier_kv"), cache)
    assert (done.is_done, done.details) == (True, {"moved": (2,), "tier": 1, "kept": 1})
    assert moved == [(2, 1), (3, 1)]
    assert carry_out(action("tier_kv", tier=2), cache).details["why"] == "no block of that tier is cached"
    cache.move = None
    assert not carry_out(action("tier_kv"), cache).is_done


@pytest.mark.capability("issue 5 §2: quantize_kv leaves below 85 %")
def test_quantize():
    """Fewer bits at once; back only strictly below 85 % of memory, never while it is unknown."""
    cache = cache_of()
    assert carry_out(action("quantize_kv"), cache).details == {"bits": 4, "before": 16}
    for usage, why in ((None, True), (0.93, True), (0.85, True), (0.849, False)):
        cache.usage = usage
        done = carry_out(action("quantize_kv", bits=16), cache)
        assert ("why" in done.details) == why
        assert done.is_done == (not why)
    assert cache.precision.bits == 16
    assert carry_out(action("quantize_kv", bits=16), cache).details["why"] == "already so"


@given(st.lists(st.floats(0, 1) | st.none(), max_size=40))
def test_precision_does_not_flutter(usages):
    """It goes back exactly when usage is below 85 %."""
    precision = Precision()
    for usage in usages:
        precision.ask(4, usage)
        assert precision.bits == 4
        assert (precision.relax(usage) == 16) == (usage is not None and usage < 0.85)
    assert precision.relax(math.nan) in (4, 16)


def test_other_actions_are_the_hosts():
    """Only the three actions on a KV cache are known here, and each is one of the language."""
    assert set(CARRIERS) == {"evict_kv", "tier_kv", "quantize_kv"} <= set(ACTIONS)
    for other in (action("reset_context"), ResetContext()):
        with pytest.raises(UsageError, match="reset_context"):
            carry_out(other, cache_of())
