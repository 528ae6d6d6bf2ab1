"""Which rules of a pack can ever match when some signals are never there."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs

from stabilitykit.rules.pack import DetectorUse, Node, Pack, Rule
from stabilitykit.signals import TIME

__all__ = ["DERIVED", "Blind", "blind_rules", "signals_read"]

DERIVED: Mapping[str, tuple[str, ...]] = {
    "kv_hit_ratio": ("cached_tokens", "input_tokens"),
    "session_tokens": ("input_tokens", "output_tokens"),
    "context_usage_ratio": ("input_tokens", "context_window_tokens"),
    "is_history_truncated": ("input_tokens",),
}
"""Signals that the engine fills in from others: what it needs at least."""


@attrs.frozen
class Blind:
    """A rule that reads signals which are never there.

    Parameters
    ----------
    missing
        The signals, sorted.
    is_dead
        True when the rule can never match without them; else it only sees less.
    """

    rule: Rule
    missing: tuple[str, ...]
    is_dead: bool


def signals_read(node: Node, detectors: Mapping[str, DetectorUse]) -> frozenset[str]:
    """List the signals that a condition reads, through detectors too."""
    if node.op == "sig":
        return frozenset((node.name,))
    if node.op == "out":
        return frozenset(s for s in detectors[node.name.split(".")[0]].inputs.values() if s not in ("", TIME))
    return frozenset().union(*(signals_read(a, detectors) for a in node.args))


def blind_rules(pack: Pack, present: Collection[str]) -> list[Blind]:
    """Find the rules that read signals outside `present`.

    A detector counts as silent only when none of its inputs is there, so a rule called dead
    is dead for certain.

    Parameters
    ----------
    pack
        A checked pack.
    present
        Signals that are there at least sometimes; derivable ones are added.
    """
    there = {*present, *(name for name, parts in DERIVED.items() if set(parts) <= set(present))}
    detectors = {d.id: d for d in pack.detectors}
    sight = _Sight(there, detectors)
    found = []
    for rule_id in pack.order:
        rule = pack.rule(rule_id)
        can_match, can_clear = sight.verdict(rule.when)
        is_unknown_only = not can_match and not can_clear
        can_match = can_match or (rule.on_missing == "fire" and is_unknown_only)
        sight.rules[rule_id] = (can_match, can_clear)
        missing = tuple(sorted(signals_read(rule.when, detectors) - there))
        if missing or not can_match:
            found.append(Blind(rule, missing, not can_match))
    order = {rule.id: k for k, rule in enumerate(pack.rules)}
    return sorted(found, key=lambda b: order[b.rule.id])


class _Sight:
    """What a condition can become: (true, false); neither means it is always unknown."""

    def __init__(self, there: Collection[str], detectors: Mapping[str, DetectorUse]) -> None:
        self.there, self.detectors = there, detectors
        self.rules: dict[str, tuple[bool, bool]] = {}

    def is_known(self, node: Node) -> bool:
        """Tell whether a number can ever be known."""
        if node.op == "sig":
            return node.name in self.there
        if node.op == "out":
            inputs = signals_read(node, self.detectors)
            return not inputs or any(s in self.there for s in inputs)
        if node.op == "count":
            return any(self.verdict(node.args[0]))
        return all(self.is_known(a) for a in node.args)

    def verdict(self, node: Node) -> tuple[bool, bool]:
        """Tell whether a condition can become true, and whether it can become false."""
        if node.op == "not":
            can_match, can_clear = self.verdict(node.args[0])
            return can_clear, can_match
        if node.op in ("and", "or"):
            sides = [self.verdict(a) for a in node.args]
            wanted = (all, any) if node.op == "and" else (any, all)
            return wanted[0](m for m, _ in sides), wanted[1](c for _, c in sides)
        if node.op == "rule":
            return self.rules.get(node.name, (True, True))
        known = all(self.is_known(a) for a in node.args)
        return known, known
