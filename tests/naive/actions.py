"""Which of the wanted actions go out (section 7 of the specification: conflicts)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stabilitykit.decision import Action, ActionSpec
from stabilitykit.rules.pack import SEVERITIES, Rule

__all__ = ["by_severity", "resolve"]

Plain = tuple[str, dict[str, Any]]
Lost = tuple[str, dict[str, Any], str]


def by_severity(rules: Iterable[Rule]) -> list[Action]:
    """Give the `do` of fired rules, worst severity first, then in pack order."""
    ordered = sorted(rules, key=lambda rule: -SEVERITIES.index(rule.severity))  # stable
    return [action for rule in ordered for action in rule.do]


def resolve(wanted: Sequence[Action], table: Mapping[str, ActionSpec]) -> tuple[list[Plain], list[Lost]]:
    """Give (actions in output order, losers with the name of the winner)."""
    kept: list[Action] = []
    lost: list[tuple[Action, str]] = []
    for action in wanted:
        same = [k for k in kept if k.name == action.name]
        if any(dict(k.params) == dict(action.params) for k in same):
            continue
        if same and not table[action.name].many:
            lost.append((action, action.name))
        else:
            kept.append(action)
    for action in list(kept):
        group = table[action.name].group
        best = min((table[k.name].rank, k.name) for k in kept if table[k.name].group == group)[1]
        if group and best != action.name:
            lost.append((action, best))
            kept.remove(action)
    for winner in [k for k in kept if table[k.name].drops]:
        dropped = [k for k in kept if winner in kept and k.name in table[winner.name].drops]
        lost += [(k, winner.name) for k in dropped]
        kept = [k for k in kept if k not in dropped]
    kept.sort(key=lambda action: table[action.name].order)  # stable: several of one name stay in order
    return [(a.name, dict(a.params)) for a in kept], [(a.name, dict(a.params), winner) for a, winner in lost]
