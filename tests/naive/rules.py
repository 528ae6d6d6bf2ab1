"""The memory of a rule (section 5 of the specification), step by step as it is written there."""

from __future__ import annotations

import attrs

from stabilitykit.rules.pack import Rule
from tests.naive.conditions import F, T, U

__all__ = ["RuleMemory", "step_rule"]


@attrs.define
class RuleMemory:
    """What a rule remembers from turn to turn."""

    cool: int = 0
    blind: int = 0
    streak: int = 0
    keep: int = 0
    matched: bool = False
    has_fired: bool = False  # in the present episode
    history: list[bool] = attrs.field(factory=list)
    verdict: int = U  # as evaluated, before on_missing

    @property
    def level(self) -> int:
        """What ``rule:id`` reads."""
        if self.matched:
            return T
        return U if self.verdict == U else F


def step_rule(rule: Rule, memory: RuleMemory, verdict: int) -> tuple[bool, bool]:
    """Move a rule by one turn; tell whether it fires, and whether its hold just ran out."""
    memory.verdict = verdict
    if memory.cool > 0:
        memory.cool -= 1
    memory.blind = memory.blind + 1 if verdict == U else 0
    if verdict == U:
        if rule.on_missing == "fire":
            verdict = T
        elif rule.on_missing == "skip" or memory.blind > rule.hold_limit:
            verdict = F
        else:
            return False, False
    ran_out = rule.on_missing == "hold" and memory.blind == rule.hold_limit + 1
    return step_seen(rule, memory, verdict == T), ran_out


def step_seen(rule: Rule, memory: RuleMemory, is_true: bool) -> bool:
    """Steps 3 to 6: a turn that exists for this rule."""
    memory.streak = memory.streak + 1 if is_true else 0
    if rule.count is None:
        met = memory.streak >= rule.for_turns
    else:
        at_least, n = rule.count
        memory.history.append(is_true)
        del memory.history[:-n]
        met = memory.history.count(True) >= at_least
    if met or (memory.matched and is_true):
        memory.matched, memory.keep = True, rule.keep_for
    elif memory.matched and memory.keep > 0:
        memory.keep -= 1
    else:
        memory.matched, memory.has_fired = False, False
    if memory.matched and not memory.has_fired and memory.cool == 0:
        memory.has_fired, memory.cool = True, rule.cooldown
        return True
    return False
