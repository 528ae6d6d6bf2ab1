"""What the cases of a pack have shown of it: comparisons, rules, states and transitions.

A pack answers for what stands in its own file. An inherited machine is covered by the cases of every pack that has
it, because a pack without rules (``base``) cannot leave its first state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from stabilitykit.compiled import header as c
from stabilitykit.compiled.program import Program, walk
from stabilitykit.decision import Decision
from stabilitykit.engine.engine import Engine
from stabilitykit.engine.evidence import Evidence
from stabilitykit.rules.pack import Node, Pack, Rule
from stabilitykit.signals import SCOPES
from stabilitykit.turn import Turn

__all__ = ["Comparison", "Coverage", "Edge", "RuleSeen", "Watch", "machine_key"]

_LEAVES = frozenset(("cmp", "truth", "rule"))
_SIDES = (False, None, True)
"""Verdicts 0 false, 1 unknown, 2 true."""


@attrs.define
class Comparison:
    """One comparison (or yes-or-no operand) of a rule's condition, and the verdicts it was seen with."""

    rule: str
    text: str
    is_true: bool = False
    is_false: bool = False
    is_unknown: bool = False


@attrs.define
class RuleSeen:
    """One rule: it fired, and in some case it was looked at with known values and never matched."""

    rule: str
    fired: bool = False
    silent: bool = False


@attrs.define
class Edge:
    """One way from a state to another; transitions of equal ends are one."""

    source: str
    to: str
    is_taken: bool = False


class Watch:
    """An engine for one case that remembers what its decisions showed; give it to `Coverage.add` afterwards.

    Parameters
    ----------
    program
        The pack, laid out; the engine is made from it and knows no other case.
    """

    def __init__(self, program: Program) -> None:
        self._engine = Engine(program)
        self._program = program
        self.pack = program.pack
        self._leaves = {r.id: list(_leaves(r.when)) for r in program.pack.rules}
        self.verdicts: dict[tuple[str, str], set[bool | None]] = {}
        """Verdicts by (rule, text of the comparison)."""
        self.known: set[str] = set()
        """Rules whose condition was known at least once."""
        self.matched: set[str] = set()
        self.fired: set[str] = set()
        self.states: set[str] = {program.pack.initial}
        self.steps: set[tuple[str, str]] = set()

    def evaluate(self, turn: Turn) -> Decision:
        """Take a turn."""
        return self._seen(self._engine.evaluate(turn))

    def observe(self, **sample: Any) -> Decision:
        """Take a sample."""
        return self._seen(self._engine.observe(**sample))

    def _seen(self, decision: Decision) -> Decision:
        if decision._code & c.B_STALE:
            return decision
        live, p = self._engine._live, self._program
        evidence = Evidence(p.slots, p.node_slots, p.rule_slots, live.values(decision).tolist())
        for scope in _moved(decision):
            for rule in p.pack.rules:
                if rule.scope == SCOPES[scope]:
                    self._look(rule, evidence)
            if p.rules[scope].bits:
                word = live.machine_word(decision, scope)
                self._step(word >> 8 & 255, word & 255)
        self.matched.update(m.rule for m in decision.matches)
        self.fired.update(decision.fired)
        return decision

    def _look(self, rule: Rule, evidence: Evidence) -> None:
        for leaf in self._leaves[rule.id]:
            verdict = evidence.comparison(leaf, negate=False).verdict
            self.verdicts.setdefault((rule.id, leaf.text), set()).add(_SIDES[verdict])
        if evidence.verdict(rule.when) != 1:
            self.known.add(rule.id)

    def _step(self, before: int, after: int) -> None:
        names = [s.name for s in self._program.pack.states]
        self.states.add(names[after])
        if before != after:
            self.steps.add((names[before], names[after]))


def _moved(decision: Decision) -> Iterator[int]:
    """Give the scopes whose rules this decision moved."""
    if decision.scope == SCOPES[0]:
        yield 0
    for scope, bit in ((1, c.B_REPLICA), (2, c.B_DEVICE)):
        if decision._code & bit or decision.scope == SCOPES[scope]:
            yield scope


def _leaves(node: Node) -> Iterator[Node]:
    """Give the comparisons of a condition, those inside ``count(...)`` too, each once."""
    found = {n.text: n for n in walk(node) if n.op in _LEAVES}
    yield from found.values()


class Coverage:
    """What the cases have shown of one pack's own rules, and of its machine if that is its own.

    Parameters
    ----------
    pack
        The pack whose file is asked about.
    """

    def __init__(self, pack: Pack) -> None:
        own = [r for r in pack.rules if r.file == pack.files[-1]]
        self._at = {(r.id, leaf.text): Comparison(r.id, leaf.text) for r in own for leaf in _leaves(r.when)}
        self.comparisons = list(self._at.values())
        self.rules = {r.id: RuleSeen(r.id) for r in own}
        has_machine = pack.machine_file == pack.files[-1]
        self._machine = machine_key(pack) if has_machine else None
        self.states = {s.name: False for s in pack.states} if has_machine else {}
        edges = dict.fromkeys((s, t.to) for t in pack.transitions for s in t.from_)
        self.edges = {(s, to): Edge(s, to) for s, to in edges} if has_machine else {}

    def add(self, watch: Watch) -> None:
        """Take what a case of this pack showed of its rules."""
        for key, sides in watch.verdicts.items():
            if key in self._at:
                found = self._at[key]
                found.is_true |= True in sides
                found.is_false |= False in sides
                found.is_unknown |= None in sides
        for rule in self.rules.values():
            rule.fired |= rule.rule in watch.fired
            rule.silent |= rule.rule in watch.known - watch.matched

    def add_steps(self, watch: Watch) -> None:
        """Take what a case of this or another pack showed of the machine, if it is the same machine."""
        if machine_key(watch.pack) == self._machine:
            self.states.update(dict.fromkeys(watch.states, True))
            for step in watch.steps & set(self.edges):
                self.edges[step].is_taken = True

    def counts(self) -> dict[str, tuple[int, int]]:
        """Give how many were shown, of how many; a comparison and a rule have two sides each."""
        return {
            "comparisons": (sum(x.is_true + x.is_false for x in self.comparisons), 2 * len(self.comparisons)),
            "rules": (sum(r.fired + r.silent for r in self.rules.values()), 2 * len(self.rules)),
            "states": (sum(self.states.values()), len(self.states)),
            "transitions": (sum(e.is_taken for e in self.edges.values()), len(self.edges)),
        }

    @property
    def ratio(self) -> float:
        """Share that was shown, from 0 to 1; a pack with nothing of its own is covered."""
        shown, of = (sum(column) for column in zip(*self.counts().values(), strict=True))
        return shown / of if of else 1.0

    def gaps(self) -> Iterable[str]:
        """Say what no case showed."""
        for x in self.comparisons:
            for is_seen, side in ((x.is_true, "true"), (x.is_false, "false")):
                if not is_seen:
                    yield f"{x.rule}: `{x.text}` is never {side}"
        for r in self.rules.values():
            for is_seen, what in ((r.fired, "never fires"), (r.silent, "is in no case silent on values it knows")):
                if not is_seen:
                    yield f"{r.rule}: {what}"
        yield from (f"state {name}: never entered" for name, is_seen in self.states.items() if not is_seen)
        yield from (f"transition {e.source} -> {e.to}: never taken" for e in self.edges.values() if not e.is_taken)


def machine_key(pack: Pack) -> tuple[Any, ...]:
    """Give what makes two machines the same: states and transitions, not what the states do."""
    transitions = tuple((t.from_, t.to, t.when and t.when.text, t.for_turns, t.after) for t in pack.transitions)
    return pack.initial, tuple(s.name for s in pack.states), transitions
