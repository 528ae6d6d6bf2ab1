"""The state machine (section 7 of the specification)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from stabilitykit.rules.pack import SEVERITIES, Node, Pack, Rule
from tests.naive.conditions import F, T, U
from tests.naive.rules import RuleMemory

__all__ = ["MachineMemory", "guard", "step_machine"]


@attrs.define
class MachineMemory:
    """Where one instance of the machine stands."""

    state: str
    dwell: int = 0
    in_a_row: dict[int, int] = attrs.field(factory=dict)  # transition's place in the list -> turns its guard was T


def guard(node: Node, rules: Sequence[Rule], memories: Mapping[str, RuleMemory]) -> int:
    """Evaluate a guard over the rules of one scope."""
    if node.op == "and":
        return min(guard(a, rules, memories) for a in node.args)
    if node.op == "or":
        return max(guard(a, rules, memories) for a in node.args)
    if node.op == "not":
        return T - guard(node.args[0], rules, memories)
    if node.op == "rule":
        chosen, need = [r for r in rules if r.id == node.name], 1
    else:
        chosen = [r for r in rules if SEVERITIES.index(r.severity) >= node.value]
        chosen = [r for r in chosen if not node.name or node.name in r.tags]
        need = node.n
    if sum(memories[r.id].matched for r in chosen) >= need:
        return T
    is_blind = bool(chosen) and all(memories[r.id].verdict == U for r in chosen)
    return U if is_blind else F


def step_machine(pack: Pack, memory: MachineMemory, rules: Sequence[Rule], memories: Mapping[str, RuleMemory]) -> bool:
    """Move by one turn, at most one step; tell whether a state was entered."""
    memory.dwell += 1
    target = None
    for place, transition in enumerate(pack.transitions):
        if memory.state not in transition.from_:
            continue
        verdict = T if transition.when is None else guard(transition.when, rules, memories)
        if verdict == T:
            memory.in_a_row[place] = memory.in_a_row.get(place, 0) + 1
        elif verdict == F:
            memory.in_a_row[place] = 0
        holds = verdict == T and memory.in_a_row[place] >= transition.for_turns and memory.dwell >= transition.after
        if holds and target is None:
            target = transition.to
    if target is None:
        return False
    memory.state, memory.dwell, memory.in_a_row = target, 0, {}
    return True
