"""The memory of one session, replica or device, and when a turn is a sample of a wider scope."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from stabilitykit.rules.pack import DetectorUse, Pack
from tests.naive.conditions import Frame
from tests.naive.machine import MachineMemory, step_machine
from tests.naive.plan import Part
from tests.naive.rules import RuleMemory, step_rule
from tests.naive.values import UnitMemory, finite, suspect

__all__ = ["Instance", "Moved", "Twins"]

Twins = Mapping[str, Callable[[DetectorUse], Any]]
Fault = tuple[str, str]


@attrs.define
class Moved:
    """What happened in one scope on one turn or sample."""

    fired: list[str] = attrs.field(factory=list)
    entered: bool = False


@attrs.define
class Instance:
    """The memory of one session, replica or device."""

    twins: dict[str, Any]
    machine: MachineMemory
    rules: dict[str, RuleMemory]
    levels: dict[str, int]
    outputs: dict[str, float | None] = attrs.field(factory=dict)
    histories: dict[str, list[Any]] = attrs.field(factory=dict)
    values: dict[str, float | None] = attrs.field(factory=dict)  # of sub-expressions, as of the last turn or sample
    signals: dict[str, Any] = attrs.field(factory=dict)  # of the last sample
    once_known: set[str] = attrs.field(factory=set)
    reported: set[str] = attrs.field(factory=set)
    units: dict[str, UnitMemory] = attrs.field(factory=dict)
    sampled_s: float | None = None  # when the last sample was measured, as far as anyone said
    newest_s: float | None = None  # the time the next sample has to beat
    is_observed: bool = False

    @classmethod
    def fresh(cls, pack: Pack, part: Part, twins: Twins) -> Instance:
        """Give the memory of a new session, replica or device."""
        memories = {rule.id: RuleMemory() for rule in part.rules}
        return cls(
            twins={use.id: twins[use.spec.type](use) for use in part.detectors},
            machine=MachineMemory(pack.initial),
            rules=memories,
            levels={rule_id: memory.level for rule_id, memory in memories.items()},
        )

    def is_sample(self, is_given: bool, at_s: float | None) -> bool:
        """Tell whether a turn that brings (or not) signals of this scope is a sample of it."""
        if not is_given:
            return False
        if at_s is None:
            return not self.is_observed
        return self.newest_s is None or at_s > self.newest_s

    def is_older(self, at_s: float | None) -> bool:
        """Tell whether an observation of that time comes too late."""
        return at_s is not None and self.newest_s is not None and at_s <= self.newest_s

    def is_expired(self, now_s: float | None, ttl_s: float | None) -> bool:
        """Tell whether the last sample is too old to be read."""
        if ttl_s is None or now_s is None or self.sampled_s is None:
            return False
        return now_s - self.sampled_s > ttl_s

    def change_model(self, part: Part) -> None:
        """Forget what belongs to the model before."""
        for use in part.detectors:
            if use.spec.model_bound:
                self.restart(use)
        for text in part.model_bound:
            self.histories.pop(text, None)

    def restart(self, use: DetectorUse) -> None:
        """Give a detector its first memory again."""
        self.twins[use.id].reset()
        self.silence(use)

    def silence(self, use: DetectorUse) -> None:
        """Make a detector's outputs unknown."""
        for output in use.spec.outputs:
            self.outputs[f"{use.id}.{output.name}"] = None

    def update_detector(self, use: DetectorUse, signals: Mapping[str, Any]) -> list[Fault]:
        """Let a detector take this turn's or sample's inputs."""
        inputs = {setting: signals.get(name) for setting, name in use.inputs.items()}
        faults: list[Fault] = []
        dim = use.settings.get("dim")
        for setting, value in inputs.items():
            if dim is not None and isinstance(value, list) and len(value) != dim:
                faults.append(("dimension", use.inputs[setting]))
                inputs[setting] = None
        got = self.twins[use.id].update(inputs)
        for output in use.spec.outputs:
            value = got.get(output.name)
            self.outputs[f"{use.id}.{output.name}"] = None if value is None else finite(float(value))
        return faults

    def watch(self, part: Part, signals: Mapping[str, Any]) -> list[Fault]:
        """Notice exchanged units, and remember which signals were ever known here."""
        self.once_known |= {name for name, value in signals.items() if value is not None}
        faults = []
        for spec in part.signals:
            value = signals.get(spec.name)
            is_time = spec.unit in ("ms", "us") and spec.kind != "array"
            if is_time and value is not None and suspect(self.units.setdefault(spec.name, UnitMemory()), value):
                faults.append(("unit_suspect", spec.name))
        return faults

    def move(
        self, pack: Pack, part: Part, reads: Mapping[str, tuple[str, ...]], frame: Frame
    ) -> tuple[Moved, list[Fault]]:
        """Move rules, sub-expressions and machine by one turn or sample."""
        moved, faults = Moved(), []
        for rule in part.in_order:
            memory = self.rules[rule.id]
            fires, ran_out = step_rule(rule, memory, frame.verdict(rule.when))
            self.levels[rule.id] = memory.level
            frame.levels[rule.id] = memory.level
            if fires:
                moved.fired.append(rule.id)
            if ran_out:
                faults += self.stale(reads[rule.id], frame.signals)
        for node in part.memories.values():
            frame.remembered(node)
        self.values.update(frame.moved)
        if part.rules or part.scope == "session":
            moved.entered = step_machine(pack, self.machine, part.rules, self.rules)
        return moved, faults

    def stale(self, names: tuple[str, ...], signals: Mapping[str, Any]) -> list[Fault]:
        """Name the signals that were known once and are not now, each once."""
        gone = [n for n in names if signals.get(n) is None and n in self.once_known and n not in self.reported]
        self.reported |= set(gone)
        return [("signal_stale", name) for name in gone]
