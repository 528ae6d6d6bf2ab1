"""Mitigations of a full KV cache: which block goes, which moves to a slower tier, when to use fewer bits."""

from __future__ import annotations

from stabilitykit.mitigations.kv.policy import FRESHNESS, POLICIES, Content, KVPolicy, PolicyName

__all__ = ["FRESHNESS", "POLICIES", "Content", "KVPolicy", "PolicyName"]
