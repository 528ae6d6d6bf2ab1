"""Random state machines over the rules of a pack."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from stabilitykit.decision import Action
from stabilitykit.rules.pack import SEVERITIES, Node, Rule, State, Transition
from tests.naive import build
from tests.naive.conditions import F, T
from tests.naive.machine import guard
from tests.naive.rules import RuleMemory

__all__ = ["random_machine"]

NAMES = ("healthy", "warning", "recovering", "broken")
Machine = tuple[tuple[State, ...], str, tuple[Transition, ...]]


def random_machine(rng: random.Random, rules: Sequence[Rule], actions: Callable[[], tuple[Action, ...]]) -> Machine:
    """Give states, the initial one, and transitions by which every state can be reached."""
    names = NAMES[: rng.randint(2, 4)]
    states = tuple(
        State(name, actions() if rng.random() < 0.4 else (), actions() if rng.random() < 0.3 else ()) for name in names
    )
    wanted: list[tuple[tuple[str, ...], str]] = [
        ((rng.choice(names[:place]),), name) for place, name in enumerate(names) if place
    ]
    for _ in range(rng.randint(1, 4)):
        target = rng.choice(names)
        sources = tuple(n for n in names if n != target and rng.random() < 0.6)
        wanted += [(sources, target)] if sources else []
    rng.shuffle(wanted)
    made: list[Transition] = []
    for sources, target in wanted:
        for _ in range(20):
            transition = random_transition(rng, rules, sources, target)
            if not any(wins_always(earlier, transition, rules) for earlier in made):
                made.append(transition)
                break
    reached = {names[0]}
    for _ in names:
        reached |= {t.to for t in made if reached & set(t.from_)}
    lost = [name for name in names if name not in reached]
    # First in the list but slow: nothing behind them is out of reach.
    made = [Transition((names[0],), n, build.at_least(1, "info"), 9 - i) for i, n in enumerate(lost)] + made
    return states, names[0], tuple(made)


def random_transition(rng: random.Random, rules: Sequence[Rule], sources: tuple[str, ...], target: str) -> Transition:
    """Give a transition with a guard, an `after`, or both."""
    when = random_guard(rng, rules, rng.choice([0, 0, 1, 2])) if rng.random() < 0.85 else None
    for_turns = rng.choice([1, 1, 2, 3]) if when else 1
    after = rng.choice([0, 0, 1, 3]) if when else rng.randint(1, 4)
    text = when.text if when else ""
    return Transition(sources, target, when, for_turns, after, f"{'+'.join(sources)}>{target}: {text}")


def random_guard(rng: random.Random, rules: Sequence[Rule], depth: int) -> Node:
    """Grow a guard."""
    kind = rng.random()
    if depth <= 0 or kind < 0.4:
        if rng.random() < 0.2:
            return build.reference(rng.choice(rules).id)
        tags = sorted({tag for rule in rules for tag in rule.tags})
        tag = rng.choice(tags) if rng.random() < 0.25 else ""
        atom = build.at_least(rng.choice([1, 1, 1, 2]), rng.choice(SEVERITIES), tag)
        return build.invert(atom) if rng.random() < 0.4 else atom
    if kind < 0.6:
        return build.both(random_guard(rng, rules, depth - 1), random_guard(rng, rules, depth - 1))
    if kind < 0.85:
        return build.either(random_guard(rng, rules, depth - 1), random_guard(rng, rules, depth - 1))
    return build.invert(random_guard(rng, rules, depth - 1))


def wins_always(earlier: Transition, later: Transition, rules: Sequence[Rule]) -> bool:
    """Tell whether an earlier transition seems to hold whenever a later one does, from some state."""
    if not set(earlier.from_) & set(later.from_):
        return False
    if earlier.after > max(later.after, later.for_turns) or earlier.for_turns > later.for_turns:
        return False
    if earlier.when is None or later.when is None:
        return earlier.when is None
    rng = random.Random(0)
    for _ in range(100):
        share = rng.random()
        memories = {r.id: RuleMemory(matched=rng.random() < share, verdict=F) for r in rules}
        own = [r for r in rules if r.scope == "session"]
        if guard(later.when, own, memories) == T and guard(earlier.when, own, memories) != T:
            return False
    return True
