"""Small packs for directed tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stabilitykit.decision import ACTIONS, Action
from stabilitykit.rules.pack import DetectorUse, Node, Pack, Rule, State, Transition
from stabilitykit.signals import SignalSpec
from tests.naive import build
from tests.naive.fakes import FAKES

__all__ = ["BREAKER", "action", "over", "pack_of", "rule_of", "transition", "use_fake"]

STATES = (State("healthy"), State("warning"), State("recovering"), State("broken"))


def over(name: str, limit: float, unit: str = "ms") -> Node:
    """Write ``name > limit``."""
    return build.compare(build.operand(name), ">", build.literal(limit, unit))


def action(name: str, /, **params: Any) -> Action:
    """Want an action, defaults filled in."""
    return Action(name, {p.name: params.get(p.name, p.default) for p in ACTIONS[name].params})


def rule_of(rule_id: str, when: Node, **fields: Any) -> Rule:
    """Write a rule in the scope of what it reads."""
    return Rule(rule_id, when, when.text, when.scope, **fields)  # type: ignore[arg-type]


def transition(sources: str, to: str, when: Node | None = None, for_turns: int = 1, after: int = 0) -> Transition:
    """Write a transition from states named in one text."""
    return Transition(tuple(sources.split()), to, when, for_turns, after)


def use_fake(name: str, kind: str, scope: str = "session", widened: bool = False, **inputs: str) -> DetectorUse:
    """Use a fake detector."""
    spec = FAKES[kind]
    return DetectorUse(name, spec, {**spec.inputs, **inputs}, {}, scope, widened, name)  # type: ignore[arg-type]


def pack_of(
    *rules: Rule,
    transitions: Sequence[Transition] = (),
    states: Sequence[State] = STATES,
    detectors: Sequence[DetectorUse] = (),
    signals: Sequence[SignalSpec] = (),
) -> Pack:
    """Make a pack of rules that are given in topological order."""
    return Pack(
        name="small",
        desc="",
        params={},
        signals={s.name: s for s in signals},
        detectors=tuple(detectors),
        rules=rules,
        order=tuple(r.id for r in rules),
        states=tuple(states),
        initial=states[0].name,
        transitions=tuple(transitions),
        actions=ACTIONS,
        fingerprint="small",
    )


BREAKER = (
    transition("healthy warning recovering", "broken", build.at_least(1, "critical")),
    transition("broken", "recovering", after=3),
    transition("recovering", "healthy", build.invert(build.at_least(1)), for_turns=2),
)
