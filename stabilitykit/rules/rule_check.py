"""Rules of a pack: condition, durations, actions and reason, each after the rules it names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from stabilitykit.decision import Action, ActionSpec
from stabilitykit.rules.actions import plan_actions
from stabilitykit.rules.conditions.condition import Names, check_condition, walk
from stabilitykit.rules.cost import Cost
from stabilitykit.rules.files import keys
from stabilitykit.rules.files.locate import BAD, Findings, Place
from stabilitykit.rules.files.merge import Merged
from stabilitykit.rules.files.shape import Item, check_map, check_required
from stabilitykit.rules.order import find_cycles, references, topological
from stabilitykit.rules.pack import DetectorUse, Node, ParamValue, Rule
from stabilitykit.rules.templates import MAX_PARSED, check_template, must_be_parsed
from stabilitykit.rules.values import Values
from stabilitykit.signals import SignalSpec

__all__ = ["Label", "RuleCheck", "labels"]

MAX_WINDOW = 64
_CYCLE_SHOWN = 18
_WORDS = re.compile(r"[a-z][a-z0-9_]*")


class Label(NamedTuple):
    """What a guard needs to know of a rule, sound or not."""

    severity: str
    tags: tuple[str, ...]


def labels(items: Mapping[str, Item]) -> dict[str, Label]:
    """Give severity and tags of every rule that is declared."""
    return {i: Label(_sound(item.fields, "severity", "warning"), tags_of(item)) for i, item in items.items()}


def tags_of(item: Item) -> tuple[str, ...]:
    """Give the tags of a rule, none when they were refused."""
    return tuple(_sound(item.fields, "tags", ()))


class RuleCheck:
    """Checks all rules, each after the rules it names."""

    def __init__(
        self,
        findings: Findings,
        merged: Merged,
        values: Values,
        signals: Mapping[str, SignalSpec],
        uses: Mapping[str, DetectorUse | None],
        params: Mapping[str, ParamValue],
        actions: Mapping[str, ActionSpec],
    ) -> None:
        self.findings, self.values, self.actions = findings, values, actions
        self.items = merged.section("rules")
        self.disabled = merged.disabled.get("rules", frozenset())
        self.signals, self.params = signals, params
        self.uses = {n: u for n, u in uses.items() if u is not None}
        self.outputs = {n: {f"{n}.{o.name}" for o in u.spec.outputs} for n, u in self.uses.items()}
        self.broken: frozenset[str] = frozenset()
        self.rules: dict[str, Rule] = {}
        self.parsed = 0
        raw, place = merged.defaults.get("on_missing", (None, None))
        self.on_missing = raw if isinstance(raw, str) else "hold"
        raw, place = merged.defaults.get("hold_limit", (None, None))
        hold_limit = values.turns(place, raw, 20) if place else 20
        self.durations = (("for", 1, 1), ("keep_for", 0, 0), ("cooldown", 0, 0), ("hold_limit", hold_limit, 0))

    def check(self, whole: Place) -> tuple[dict[str, Rule], list[str]]:
        """Give the sound rules by id, and their order."""
        named = {i: references(w) if isinstance(w := item.get("when"), str) else () for i, item in self.items.items()}
        order, circling = topological(named)
        self._report_cycles(circling, named)
        scopes: dict[str, str | None] = dict.fromkeys(self.items)
        detectors = {n: (u.spec, u.scope) for n, u in self.uses.items()}
        names = Names(self.signals, detectors, self.params, scopes, self.disabled)
        cost, placed = Cost(self.findings, whole), frozenset(order)
        for rule_id in [*order, *circling]:
            item = self.items[rule_id]
            rule = self._rule(item, names)
            if rule is not None:
                self.rules[rule_id] = rule
                scopes[rule_id] = rule.scope
                if not cost.count(rule):
                    break
                if rule_id in placed:
                    cost.check_levels(rule, item)
        return self.rules, order

    def _report_cycles(self, circling: list[str], named: Mapping[str, tuple[str, ...]]) -> None:
        for cycle in find_cycles(circling, named):
            shown = cycle if len(cycle) <= _CYCLE_SHOWN else [*cycle[: _CYCLE_SHOWN - 2], "...", cycle[-1]]
            place = self.items[cycle[0]].at("when")
            self.findings.add(place, "SK307", "rules name each other: " + " -> ".join(shown))

    def _rule(self, item: Item, names: Names) -> Rule | None:
        when = self._condition(item, names)
        scope = when.scope if when else ""
        word = {"": "", "session": "turns"}.get(scope, "samples")
        turns = {
            key: default
            if (raw := item.fields.get(key)) is None
            else self.values.turns(item.at(key), raw, default, lo=lo, word=word)
            for key, default, lo in self.durations
        }
        count = self._count(item, word)
        self._check_together(item)
        fields = item.fields
        do: tuple[Action, ...] = ()
        if (asked := item.get("do")) is not None:
            do = plan_actions(self.findings, item.at("do"), asked, f"rule:{item.id}", self.actions, self.values)
        if when is None:
            return None
        self._reason(item, when)
        return Rule(
            id=item.id,
            when=when,
            source=fields["when"],
            scope=when.scope or "session",  # type: ignore[arg-type]
            desc=_sound(fields, "desc", ""),
            severity=_sound(fields, "severity", "warning"),
            for_turns=turns["for"],
            count=count,
            keep_for=turns["keep_for"],
            cooldown=turns["cooldown"],
            on_missing=_sound(fields, "on_missing", self.on_missing),
            hold_limit=turns["hold_limit"],
            do=do,
            reason=_sound(fields, "reason", ""),
            tags=tags_of(item),
            memory=f"{item.id}|{when.text}|{count[1] if count else ''}",
            file=item.place.file,
            line=item.place.line,
        )

    def _condition(self, item: Item, names: Names) -> Node | None:
        text = item.get("when")
        if text is None or text is BAD or self.findings.is_full(item.place):
            return None
        if self.broken and not self.broken.isdisjoint(_WORDS.findall(text)):
            return None  # it reads something that was reported already
        node, problems = check_condition(text, names)
        place = item.at("when")
        for problem in problems:
            self.findings.add_inside(place, problem)
        return None if problems else node

    def _count(self, item: Item, word: str) -> tuple[int, int] | None:
        raw = item.get("count")
        if raw is None or raw is BAD:
            return None
        place = item.at("count")
        fields = check_map(self.findings, place, raw, keys.COUNT, "`count`")
        check_required(self.findings, place, fields, keys.COUNT, "`count`")
        n = self.values.turns(place.child("in"), fields.get("in"), 0, lo=1, hi=MAX_WINDOW, word=word)
        at_least = fields.get("at_least")
        k = self.values.whole(place.child("at_least"), at_least, 0, lo=1, hi=MAX_WINDOW) if at_least is not None else 0
        if k > n > 0:
            self.findings.add(place.child("at_least"), "SK206", f"{k} of the last {n} turns can never be met")
        return (k, n)

    def _check_together(self, item: Item) -> None:
        fields = item.fields
        if fields.get("for") is not None and fields.get("count") is not None:
            field = "for" if "for" not in item.origins else "count"
            self.findings.add(item.at(field), "SK214", "`for` and `count` exclude each other", key=True)
        if fields.get("cooldown") is not None and not fields.get("do"):
            self.findings.add(item.at("cooldown"), "SK214", "`cooldown` without `do` silences nothing", key=True)

    def _reason(self, item: Item, when: Node) -> None:
        reason = item.get("reason")
        if not reason or reason is BAD:
            return
        if must_be_parsed(reason):
            self.parsed += len(reason)
            if self.parsed > MAX_PARSED:
                message = f"the templates that choose and compare hold more than {MAX_PARSED:,} characters together"
                self.findings.add(item.at("reason"), "SK605", message)
                return
        for problem in check_template(reason, self._readable(when)):
            self.findings.add_inside(item.at("reason"), problem)

    def _readable(self, when: Node) -> frozenset[str]:
        """Give what the reason of a rule may print."""
        names: set[str] = set()
        for node in walk(when):
            if node.op == "sig":
                names.add(node.name)
            elif node.op == "param":
                names.add(f"params.{node.name}")
            elif node.op == "out":
                names |= self.outputs[node.name.partition(".")[0]]
        return frozenset(names)


def _sound(fields: Mapping[str, Any], field: str, default: Any) -> Any:
    value = fields.get(field)
    return default if value is None or value is BAD else value
