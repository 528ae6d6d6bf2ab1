"""What is wrong with a state machine as a graph: SK502, SK503, SK505, SK507."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stabilitykit.rules.files.locate import Findings, Place
from stabilitykit.rules.pack import SEVERITIES, Node, Rule, Transition

__all__ = ["check_graph", "implies"]

MAX_STEPS = 100_000
"""What looking for transitions that are never taken may cost."""


def check_graph(
    findings: Findings,
    states: Mapping[str, Place],
    initial: str,
    transitions: Sequence[tuple[Transition, Place]],
    rules: Mapping[str, Rule],
) -> None:
    """Check reachability, loops on the spot, and transitions that can never be taken.

    Parameters
    ----------
    states
        Every state with its place.
    initial
        A state of them.
    transitions
        In list order, with names that exist.
    """
    _check_reachable(findings, states, initial, transitions)
    graph = _Implication(rules)
    first: dict[tuple[object, ...], int] = {}
    leaving: dict[str, list[int]] = {}
    for index, (transition, place) in enumerate(transitions):
        if transition.to in transition.from_:
            message = f"`{transition.to}` leads to itself"
            findings.add(place.child("to"), "SK505", message, hint="a state is kept by taking no transition")
            continue
        same = first.setdefault((frozenset(transition.from_), transition.to, *_guard(transition)), index)
        if same != index:
            line = transitions[same][1].line
            findings.add(place, "SK507", f"the same transition as in line {line}")
        elif winners := _winners(transitions, leaving, transition, graph):
            lines = ", ".join(str(transitions[i][1].line) for i in winners)
            message = f"never taken: the transition in line {lines} always wins"
            findings.add(place, "SK503", message, hint="put the narrower transition first")
        for state in transition.from_:
            leaving.setdefault(state, []).append(index)


def _check_reachable(
    findings: Findings, states: Mapping[str, Place], initial: str, transitions: Sequence[tuple[Transition, Place]]
) -> None:
    ways: dict[str, list[str]] = {}
    for transition, _ in transitions:
        for state in transition.from_:
            ways.setdefault(state, []).append(transition.to)
    reached, waiting = {initial}, [initial]
    while waiting:
        more = set(ways.get(waiting.pop(), ())) - reached
        reached |= more
        waiting += more
    for name, place in states.items():
        if name not in reached:
            message = f"no way leads from `{initial}` to `{name}`"
            findings.add(place.child("state"), "SK502", message, hint="add a transition to it, or remove it")


def _guard(transition: Transition) -> tuple[str, int, int]:
    return (transition.when.text if transition.when else "", transition.for_turns, transition.after)


def _winners(
    transitions: Sequence[tuple[Transition, Place]],
    leaving: Mapping[str, list[int]],
    late: Transition,
    graph: _Implication,
) -> list[int]:
    """Give the earlier transitions that together always win, [] when the late one has a chance."""
    found: set[int] = set()
    for state in late.from_:
        win = next((i for i in leaving.get(state, ()) if _always_wins(transitions[i][0], late, graph)), None)
        if win is None:
            return []
        found.add(win)
    return sorted(found)


def _always_wins(early: Transition, late: Transition, graph: _Implication) -> bool:
    if not graph.may_step():
        return False
    # A guard that was true on n turns of this state needs a dwell of n at least.
    dwell = max(late.after, late.for_turns if late.when else 0, 1)
    if early.after > dwell:
        return False
    if early.when is None:
        return True
    if late.when is None:
        return False
    if early.when.text == late.when.text:
        return early.for_turns <= late.for_turns
    # With a longer `for`, an unknown turn freezes one counter where it restarts the other.
    return early.for_turns <= 1 and graph.holds(late.when, early.when)


def implies(a: Node, b: Node, rules: Mapping[str, Rule]) -> bool:
    """Tell whether a guard that is true surely makes another true (three-valued, never a guess).

    Parameters
    ----------
    a, b
        Checked guards.
    rules
        By id, for severities and tags of ``rule:id``.
    """
    return _Implication(rules).holds(a, b)


class _Implication:
    """Implications between the guards of one machine, within a number of steps: then it claims none."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self.rules = rules
        self.steps = 0

    def may_step(self) -> bool:
        """Count one step, and tell whether it may still be made."""
        self.steps += 1
        return self.steps <= MAX_STEPS

    def holds(self, a: Node, b: Node) -> bool:
        """Tell whether `a` surely makes `b` true."""
        if not self.may_step():
            return False
        if a.text == b.text:
            return True
        if a.op == "or":
            return all(self.holds(x, b) for x in a.args)
        if b.op == "and":
            return all(self.holds(a, x) for x in b.args)
        if a.op == "and" and any(self.holds(x, b) for x in a.args):
            return True
        if b.op == "or" and any(self.holds(a, x) for x in b.args):
            return True
        return b.op == "atleast" and self._within(a, b)

    def _within(self, a: Node, b: Node) -> bool:
        """Tell whether a range of rules, or one rule, lies in another range."""
        if a.op == "rule":
            rule = self.rules.get(a.name)
            if rule is None:
                return False
            worse = SEVERITIES.index(rule.severity) >= b.value
            return b.n <= 1 and worse and (not b.name or b.name in rule.tags)
        return a.op == "atleast" and a.n >= b.n and a.value >= b.value and (not b.name or a.name == b.name)
