"""Mitigations of a full KV cache: which block goes, which moves to a slower tier, when to use fewer bits."""

from __future__ import annotations

from stabilitykit.mitigations.kv.acting import Done, KVCache, carry_out
from stabilitykit.mitigations.kv.policy import FRESHNESS, POLICIES, Content, KVPolicy, PolicyName
from stabilitykit.mitigations.kv.quantize import Precision
from stabilitykit.mitigations.kv.tiers import Move, TierMap

__all__ = [
    "FRESHNESS",
    "POLICIES",
    "Content",
    "Done",
    "KVCache",
    "KVPolicy",
    "Move",
    "PolicyName",
    "Precision",
    "TierMap",
    "carry_out",
]
