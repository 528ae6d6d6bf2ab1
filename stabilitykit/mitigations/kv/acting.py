"""The KV actions of a decision, carried out on a host's cache; the receipt says what was really done.

Examples
--------
>>> from stabilitykit.actions import Action
>>> from stabilitykit.mitigations.kv import KVPolicy, TierMap
>>> from stabilitykit.mitigations.kv.acting import KVCache, carry_out
>>> cache = KVCache(KVPolicy("lru", capacity=8))
>>> cache.policy.request([1, 2, 3]), cache.policy.request([1, 4])
(0, 1)
>>> _ = cache.tiers.update({1: 0.9, 2: 0.9, 3: 0.9, 4: 0.1})
>>> carry_out(Action("evict_kv", {"tier": 2, "share": 1.0}), cache)
Done(action='evict_kv', is_done=True, details={'evicted': (3, 2), 'kept': 1})
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from stabilitykit.actions import Action
from stabilitykit.errors import UsageError
from stabilitykit.mitigations.directives import Directive, EvictKv, QuantizeKv, TierKv, directive
from stabilitykit.mitigations.kv.policy import KVPolicy
from stabilitykit.mitigations.kv.quantize import Precision
from stabilitykit.mitigations.kv.tiers import TierMap

__all__ = ["CARRIERS", "Done", "KVCache", "carry_out"]


@attrs.define
class KVCache:
    """What a host's cache lends to the actions.

    Parameters
    ----------
    policy
        The cache itself; what it evicts the host frees.
    tiers
        Tiers of its blocks by age; the host updates them, from `BlockTracker.age` for instance.
    precision
        Bits per value in force.
    move
        ``move(block, tier)`` moves a block to a tier and gives False when it could not (full, already there).
    usage
        Share of memory in use, in [0, 1]; None where it is not known.
    """

    policy: KVPolicy
    tiers: TierMap = attrs.field(factory=TierMap)
    precision: Precision = attrs.field(factory=Precision)
    move: Callable[[int, int], bool] | None = None
    usage: float | None = None


@attrs.frozen
class Done:
    """What one action did; ``details`` has ``why`` when it did nothing."""

    action: str
    is_done: bool
    details: Mapping[str, Any]


def carry_out(action: Action | Directive, cache: KVCache) -> Done:
    """Carry out ``evict_kv``, ``tier_kv`` or ``quantize_kv``.

    Parameters
    ----------
    action
        As the decision has it, or as a ``Host`` hands it over.
    cache
        What it acts on.

    Raises
    ------
    UsageError
        Any other action: the host's own to carry out.
    """
    name = action.action if isinstance(action, Directive) else action.name
    if name not in CARRIERS:
        raise UsageError(f"{name!r} is none of {', '.join(CARRIERS)}")
    return CARRIERS[name](action if isinstance(action, Directive) else directive(action), cache)


def _evict(asked: EvictKv, cache: KVCache) -> Done:
    """Evict a share of a tier: leaves first, then what they stood on if it is of that tier too."""
    tier = int(asked.tier)
    there = [block for block in cache.tiers.inside(tier) if block in cache.policy]
    wanted = math.ceil(asked.share * len(there))
    evicted: list[int] = []
    found = True
    while found and len(evicted) < wanted:
        leaves = [block for block in cache.policy.leaves() if cache.tiers.tier(block) == tier]
        dropped = [block for block in leaves[: wanted - len(evicted)] if cache.policy.drop(block)]
        for block in dropped:
            cache.tiers.forget(block)
        evicted += dropped
        found = bool(dropped)
    details: dict[str, Any] = {"evicted": tuple(evicted), "kept": len(there) - len(evicted)}
    if not there:
        details["why"] = "no block of that tier is cached"
    elif not wanted:
        details["why"] = "a share of 0 asks for none"
    elif not evicted:
        details["why"] = "each block of that tier is pinned or carries one that stays"
    return Done(asked.action, bool(evicted), details)


def _tier(asked: TierKv, cache: KVCache) -> Done:
    """Move the blocks whose age puts them into a tier there."""
    tier = int(asked.tier)
    there = [block for block in cache.tiers.inside(tier) if block in cache.policy]
    if cache.move is None:
        return Done(asked.action, False, {"moved": (), "why": "the host lends no way to move blocks"})
    moved = tuple(block for block in there if cache.move(block, tier))
    details: dict[str, Any] = {"moved": moved, "tier": tier, "kept": len(there) - len(moved)}
    if not moved:
        details["why"] = "no block of that tier is cached" if not there else "the host could move none"
    return Done(asked.action, bool(moved), details)


def _quantize(asked: QuantizeKv, cache: KVCache) -> Done:
    before, wanted = cache.precision.bits, int(asked.bits)
    after = cache.precision.ask(wanted, cache.usage)
    details: dict[str, Any] = {"bits": after, "before": before}
    if after == before:
        is_there = after == min(wanted, cache.precision.full)
        details["why"] = "already so" if is_there else "memory in use is not known to be below 85 %"
    return Done(asked.action, after != before, details)


CARRIERS: dict[str, Callable[[Any, KVCache], Done]] = {
    "evict_kv": _evict, "tier_kv": _tier, "quantize_kv": _quantize,
}  # fmt: skip
"""The actions on a KV cache, by name; each is given its directive."""
