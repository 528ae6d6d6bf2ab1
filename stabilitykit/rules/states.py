"""The machine of a pack: states and transitions, names and guards checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stabilitykit.decision import ActionSpec
from stabilitykit.rules.actions import plan_actions
from stabilitykit.rules.conditions.condition import walk
from stabilitykit.rules.conditions.guard import check_guard, worst_severities
from stabilitykit.rules.cost import MAX_CLAUSES, MAX_GUARD_CLAUSES, MAX_GUARD_TESTS, guard_clauses
from stabilitykit.rules.files import keys
from stabilitykit.rules.files.locate import BAD, Findings, Place
from stabilitykit.rules.files.scalars import show
from stabilitykit.rules.files.shape import Item, check_map, check_required
from stabilitykit.rules.machine_check import check_graph
from stabilitykit.rules.pack import Node, ParamValue, Rule, State, Transition
from stabilitykit.rules.rule_check import Label
from stabilitykit.rules.values import Values

__all__ = ["MAX_AFTER", "MachineCheck"]

_PARAMS = re.compile(r"params\s*\.\s*([a-z][a-z0-9_]*)")
MAX_STATES, MAX_TRANSITIONS, MAX_PARTS = 64, 512, 16_384  # the states a transition leaves are one word
MAX_AFTER = 65_535
"""Most turns of `after`."""


class MachineCheck:
    """Checks the machine of a pack.

    Parameters
    ----------
    rules
        Every sound rule by id.
    labels
        Severity and tags of every rule that is declared, sound or not.
    """

    def __init__(
        self,
        findings: Findings,
        values: Values,
        actions: Mapping[str, ActionSpec],
        params: Mapping[str, ParamValue],
        rules: Mapping[str, Rule],
        labels: Mapping[str, Label],
    ) -> None:
        self.findings, self.values, self.actions = findings, values, actions
        self.params, self.rules, self.labels = params, rules, labels
        self.worst = worst_severities(labels)
        self.places: dict[str, Place] = {}
        self.parts = self.clauses = self.tests = 0

    def check(self, item: Item) -> tuple[tuple[State, ...], str, tuple[Transition, ...]]:
        """Give states, initial state and transitions; what is wrong is reported and left out."""
        states = self._states(item)
        initial = item.get("initial")
        sound = initial is not None and initial is not BAD and self._is_state(item.at("initial"), initial)
        transitions = self._transitions(item)
        given = (item.get("states"), states), (item.get("transitions"), transitions)
        # The graph is looked at when all of it is sound.
        if sound and all(isinstance(raw, list) and len(raw) == len(kept) for raw, kept in given):
            check_graph(self.findings, self.places, initial, transitions, self.rules)
        return states, initial if sound else "", tuple(t for t, _ in transitions)

    def _states(self, item: Item) -> tuple[State, ...]:
        raw = item.get("states", BAD)
        if raw is BAD:
            return ()
        if not raw:
            self.findings.add(item.at("states"), "SK202", "a machine needs at least one state")
        if len(raw) > MAX_STATES:
            self.findings.add(item.at("states"), "SK602", f"{len(raw):,} states; {MAX_STATES} are allowed")
            return ()
        states: list[State] = []
        for index, entry in enumerate(raw):
            state = self._state(item.at("states").child(index), entry)
            states += [state] if state else []
        self._check_was(item, states)
        return tuple(states)

    def _state(self, place: Place, raw: Any) -> State | None:
        fields = check_map(self.findings, place, raw, keys.STATE, "a state")
        if type(raw) is not dict:
            return None
        check_required(self.findings, place, fields, keys.STATE, "a state")
        name = fields.get("state")
        if name is None or name is BAD:
            return None
        if name in self.places:
            message = f"state `{name}` stands here twice, first in line {self.places[name].line}"
            self.findings.add(place.child("state"), "SK507", message)
            return None
        self.places[name] = place
        do, while_ = (
            plan_actions(self.findings, place.child(key), fields.get(key), f"state:{name}", self.actions, self.values)
            for key in ("do", "while")
        )
        was = fields.get("was")
        return State(name, do, while_, was if isinstance(was, str) else "")

    def _check_was(self, item: Item, states: list[State]) -> None:
        first: dict[str, str] = {}
        for state in states:
            if not state.was:
                continue
            place = self.places[state.name].child("was")
            if state.was in self.places:
                self.findings.add(place, "SK507", f"`{state.was}` is still a state of this machine")
            elif state.was in first:
                self.findings.add(place, "SK507", f"`{first[state.was]}` was `{state.was}` already")
            first.setdefault(state.was, state.name)

    def _is_state(self, place: Place, name: str) -> bool:
        if name in self.places:
            return True
        if self.places:
            hint = "states: " + ", ".join(self.places)
            self.findings.add(place, "SK501", f"no state is called {show(name)}", hint=hint, near=(name, self.places))
        return False

    def _transitions(self, item: Item) -> list[tuple[Transition, Place]]:
        raw = item.get("transitions", BAD)
        if raw is BAD:
            return []
        if len(raw) > MAX_TRANSITIONS:
            message = f"{len(raw):,} transitions; {MAX_TRANSITIONS} are allowed"
            self.findings.add(item.at("transitions"), "SK602", message)
            return []
        found: list[tuple[Transition, Place]] = []
        for index, entry in enumerate(raw):
            pair = self._transition(item.at("transitions").child(index), entry)
            found += [pair] if pair else []
            if self._is_over(item.at("transitions")):
                return []
        return found

    def _is_over(self, place: Place) -> bool:
        for count, limit, what in (
            (self.parts, MAX_PARTS, "hold more than {:,} parts"),
            (self.clauses, MAX_CLAUSES, "unfold into more than {:,} clauses"),
            (self.tests, MAX_GUARD_TESTS, "unfold into clauses of more than {:,} parts"),
        ):
            if count > limit:
                self.findings.add(place, "SK602", f"the guards {what.format(limit)}")
                return True
        return False

    def _transition(self, place: Place, raw: Any) -> tuple[Transition, Place] | None:
        fields = check_map(self.findings, place, raw, keys.TRANSITION, "a transition")
        if type(raw) is not dict:
            return None
        check_required(self.findings, place, fields, keys.TRANSITION, "a transition")
        from_ = self._from(place, fields.get("from"))
        to = fields.get("to")
        known = isinstance(to, str) and self._is_state(place.child("to"), to)
        when, after = fields.get("when"), fields.get("after")
        if when is None and after is None:
            self.findings.add(place, "SK504", "a transition needs `when` or `after`", hint="`after: 5 turns`")
            return None
        turns = self.values.turns(place.child("after"), after, -1, lo=1, hi=MAX_AFTER, word="turns")
        guard, for_turns, sound = self._guard(place.child("when"), when)
        if not from_ or not known or not sound or (turns < 0 and after is not None):
            return None
        text = guard.text if guard else ""
        memory = f"{','.join(sorted(from_))}>{to}|{text}"
        return Transition(from_, str(to), guard, for_turns, max(turns, 0), memory), place

    def _from(self, place: Place, raw: Any) -> tuple[str, ...]:
        if raw is None or raw is BAD:
            return ()
        names = [raw] if isinstance(raw, str) else raw
        sound = True
        if len(names) > MAX_STATES:
            self.findings.add(place.child("from"), "SK602", f"{len(names):,} states; {MAX_STATES} are allowed")
            return ()
        seen: set[str] = set()
        for index, name in enumerate(names):
            if name in self.places and name not in seen:
                seen.add(name)
                continue
            where = place.child("from") if isinstance(raw, str) else place.child("from", index)
            sound &= self._is_state(where, name)
            if name in seen:
                self.findings.add(where, "SK507", f"`{name}` stands here twice")
            seen.add(name)
        if not names:
            self.findings.add(place.child("from"), "SK202", "a transition leaves at least one state")
        return tuple(names) if sound else ()

    def _guard(self, place: Place, raw: Any) -> tuple[Node | None, int, bool]:
        """Give guard, its `for`, and whether it is sound."""
        if raw is None:
            return None, 1, True
        if raw is BAD:
            return None, 1, False
        if any(self.values.params.get(name, BAD) is None for name in _PARAMS.findall(raw)):
            return None, 1, False  # the param was reported
        node, for_turns, problems, warnings = check_guard(raw, self.labels, self.worst, params=self.params)
        for problem in problems:
            self.findings.add_inside(place, problem)
        for warning in warnings:
            self.findings.warn(place, warning.message, warning.offset)
        self.parts += sum(1 for _ in walk(node)) if node else len(problems)
        return node, for_turns, node is not None and not problems and self._unfolds(place, node)

    def _unfolds(self, place: Place, node: Node) -> bool:
        """Count the clauses of a guard, which double with every `(a or b)` that `and` joins; false when too many."""
        clauses, tests = guard_clauses(node)
        if clauses > MAX_GUARD_CLAUSES:
            message = f"the guard unfolds into {clauses:,} clauses; {MAX_GUARD_CLAUSES} are allowed"
            hint = "put an `or` into a rule of its own, and name that rule in the guard"
            self.findings.add(place, "SK602", message, hint=hint)
            return False
        self.clauses += clauses
        self.tests += tests
        return True
