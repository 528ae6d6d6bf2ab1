"""What is wrong with a state machine as a graph: SK502, SK503, SK505, SK507."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stabilitykit.rules.locate import Findings, Place
from stabilitykit.rules.pack import SEVERITIES, Node, Rule, Transition

__all__ = ["check_graph", "implies"]


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
    for index, (transition, place) in enumerate(transitions):
        if transition.to in transition.from_:
            message = f"`{transition.to}` leads to itself"
            findings.add(place.child("to"), "SK505", message, hint="a state is kept by taking no transition")
            continue
        earlier = [t for t, _ in transitions[:index]]
        same = next((i for i, t in enumerate(earlier) if _alike(t, transition)), None)
        if same is not None:
            line = transitions[same][1].line
            findings.add(place, "SK507", f"the same transition as in line {line}")
        elif winners := _winners(earlier, transition, rules):
            lines = ", ".join(str(transitions[i][1].line) for i in winners)
            message = f"never taken: the transition in line {lines} always wins"
            findings.add(place, "SK503", message, hint="put the narrower transition first")


def _check_reachable(
    findings: Findings, states: Mapping[str, Place], initial: str, transitions: Sequence[tuple[Transition, Place]]
) -> None:
    reached = {initial}
    grown = True
    while grown:
        more = {t.to for t, _ in transitions if reached.intersection(t.from_)} - reached
        reached |= more
        grown = bool(more)
    for name, place in states.items():
        if name not in reached:
            message = f"no way leads from `{initial}` to `{name}`"
            findings.add(place.child("state"), "SK502", message, hint="add a transition to it, or remove it")


def _guard(transition: Transition) -> tuple[str, int, int]:
    return (transition.when.text if transition.when else "", transition.for_turns, transition.after)


def _alike(a: Transition, b: Transition) -> bool:
    return set(a.from_) == set(b.from_) and a.to == b.to and _guard(a) == _guard(b)


def _winners(earlier: Sequence[Transition], late: Transition, rules: Mapping[str, Rule]) -> list[int]:
    """Give the earlier transitions that together always win, [] when the late one has a chance."""
    found: set[int] = set()
    for state in late.from_:
        win = next((i for i, t in enumerate(earlier) if state in t.from_ and _always_wins(t, late, rules)), None)
        if win is None:
            return []
        found.add(win)
    return sorted(found)


def _always_wins(early: Transition, late: Transition, rules: Mapping[str, Rule]) -> bool:
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
    return early.for_turns <= 1 and implies(late.when, early.when, rules)


def implies(a: Node, b: Node, rules: Mapping[str, Rule]) -> bool:
    """Tell whether a guard that is true surely makes another true (three-valued, never a guess).

    Parameters
    ----------
    a, b
        Checked guards.
    rules
        By id, for severities and tags of ``rule:id``.
    """
    if a.text == b.text:
        return True
    if a.op == "or":
        return all(implies(x, b, rules) for x in a.args)
    if b.op == "and":
        return all(implies(a, x, rules) for x in b.args)
    if a.op == "and" and any(implies(x, b, rules) for x in a.args):
        return True
    if b.op == "or" and any(implies(a, x, rules) for x in b.args):
        return True
    if b.op != "atleast" or a.op not in ("atleast", "rule"):
        return False
    if a.op == "rule":
        rule = rules.get(a.name)
        if rule is None:
            return False
        worse = SEVERITIES.index(rule.severity) >= b.value
        return b.n <= 1 and worse and (not b.name or b.name in rule.tags)
    return a.n >= b.n and a.value >= b.value and (not b.name or a.name == b.name)
