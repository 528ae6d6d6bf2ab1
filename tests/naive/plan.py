"""What a pack reads and where it lives, worked out once."""

from __future__ import annotations

import attrs

from stabilitykit.rules.pack import DetectorUse, Node, Pack, Rule
from stabilitykit.signals import CATALOGUE, SCOPES, SignalSpec
from tests.naive.conditions import MEMORY_OPS, nodes
from tests.naive.values import BASES, DERIVED

__all__ = ["TIME", "Part", "Plan"]

TIME = "timestamp_s"  # no signal, but detectors may name it as an input


@attrs.define
class Part:
    """What of the pack lives in one scope."""

    scope: str
    signals: list[SignalSpec] = attrs.field(factory=list)
    detectors: list[DetectorUse] = attrs.field(factory=list)
    in_order: list[Rule] = attrs.field(factory=list)  # topological
    rules: list[Rule] = attrs.field(factory=list)  # pack order
    memories: dict[str, Node] = attrs.field(factory=dict)  # sub-expressions of this scope, in any rule
    model_bound: list[str] = attrs.field(factory=list)  # those that read outputs of a model-bound detector

    def is_used(self) -> bool:
        """Tell whether the pack has anything here."""
        return bool(self.signals or self.detectors or self.rules)


class Plan:
    """The parts of a pack, and what each rule reads."""

    def __init__(self, pack: Pack) -> None:
        self.parts: dict[str, Part] = {scope: Part(scope) for scope in SCOPES}
        self.specs: dict[str, SignalSpec] = {**CATALOGUE, **pack.signals}
        self.reads: dict[str, tuple[str, ...]] = {}
        uses = {use.id: use for use in pack.detectors}
        names: set[str] = set()
        for use in pack.detectors:
            self.parts[use.scope].detectors.append(use)
            names |= set(use.inputs.values())
        for rule in pack.rules:
            self.parts[rule.scope].rules.append(rule)
            self.reads[rule.id] = signals_of(rule, uses)
            names |= set(self.reads[rule.id])
            for node in nodes(rule.when):
                self.remember(node, rule, uses)
        for rule_id in pack.order:
            rule = pack.rule(rule_id)
            self.parts[rule.scope].in_order.append(rule)
        for name in sorted(names - {TIME, ""}):
            self.parts[self.specs[name].scope].signals.append(self.specs[name])
        self.wider = [s for s in ("device", "replica") if self.parts[s].is_used()]  # in the order they move
        self.derived = [name for name in DERIVED if name in names]
        self.compared = sorted((names - {TIME, ""}) | {base for name in self.derived for base in BASES[name]})

    def remember(self, node: Node, rule: Rule, uses: dict[str, DetectorUse]) -> None:
        """Note a sub-expression with memory in its scope."""
        if node.op not in MEMORY_OPS:
            return
        part = self.parts[node.scope or rule.scope]
        part.memories[node.text] = node
        read = [uses[n.name.split(".")[0]] for n in nodes(node) if n.op == "out"]
        if any(use.spec.model_bound for use in read):
            part.model_bound.append(node.text)


def signals_of(rule: Rule, uses: dict[str, DetectorUse]) -> tuple[str, ...]:
    """Name the signals a condition reads, through detectors too, not through other rules."""
    found: list[str] = []
    for node in nodes(rule.when):
        if node.op == "sig":
            found.append(node.name)
        elif node.op == "out":
            found += uses[node.name.split(".")[0]].inputs.values()
    return tuple(name for name in dict.fromkeys(found) if name not in (TIME, ""))
