"""Random streams of turns and observations for a pack: every kind of input, session and disorder."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import attrs

from stabilitykit.decision import Receipt
from stabilitykit.rules.pack import Pack
from stabilitykit.signals import SignalSpec
from stabilitykit.turn import MISSING, Turn
from tests.naive.conditions import nodes
from tests.naive.plan import Plan

__all__ = ["CLEAN", "MODES", "Observation", "Stream", "random_stream"]

MODES = {"valid": 46, "missing": 13, "nan": 7, "infinite": 7, "boundary": 13, "tie": 13, "mistyped": 1}
CLEAN = {"valid": 60, "boundary": 20, "tie": 20}
TYPICAL = {"ms": 160.0, "us": 400.0, "tokens": 1500.0, "ratio": 1.0, "count": 5.0, "C": 100.0}
DONE = ("trim_context", "reset_context", "rollback_snapshot", "insert_summary", "throttle")
LENGTH = 8  # of arrays


@attrs.frozen
class Observation:
    """The keyword arguments of one ``observe``."""

    arguments: dict[str, Any]


@attrs.define
class Stream:
    """Entries in the order of the calls, and how many inputs were of each mode."""

    entries: list[Turn | Observation] = attrs.field(factory=list)
    modes: Counter[str] = attrs.field(factory=Counter)


def random_stream(pack: Pack, seed: int, length: int = 60, modes: Mapping[str, int] = MODES) -> Stream:
    """Build a stream for a pack; equal seeds give equal streams.

    Parameters
    ----------
    pack
        What is read decides what is given.
    seed
        Of everything random.
    length
        Number of entries.
    modes
        Weights of the kinds of input.
    """
    maker = Maker(pack, random.Random(seed), modes)
    for _ in range(length):
        maker.entry()
    return maker.stream


class Maker:
    """Make the entries of a stream one after the other."""

    def __init__(self, pack: Pack, rng: random.Random, weights: Mapping[str, int]) -> None:
        self.weights = weights
        self.rng, self.plan, self.stream = rng, Plan(pack), Stream()
        self.declared = set(pack.signals)
        self.thresholds: dict[str, list[float]] = {}
        for rule in pack.rules:
            for node in nodes(rule.when):
                if node.op in ("num", "param"):
                    self.thresholds.setdefault(node.unit, []).append(node.value)
        self.last_id: dict[tuple[str, str], int] = {}
        self.last_turn: dict[tuple[str, str], Turn] = {}
        self.last_value: dict[tuple[str, ...], Any] = {}
        self.wrong_unit: dict[str, int] = {}
        self.clock = 1000.0
        self.sample_s = 1000.0
        self.step = rng.choice([0.5, 5.0, 30.0])

    def entry(self) -> None:
        """Add a turn or an observation."""
        self.clock += self.rng.expovariate(1.0 / self.step) + (200.0 if self.rng.random() < 0.03 else 0.0)
        entry = self.observation() if self.rng.random() < 0.12 else self.turn()
        self.stream.entries.append(entry)

    # who and when

    def turn(self) -> Turn:
        """Make a turn: mostly the next one of some session, sometimes an old, repeated or changed one."""
        key = (self.rng.choice(["", "", "t2"]), self.rng.choice(["a", "a", "b", "c"]))
        last = self.last_turn.get(key)
        kind = self.rng.random()
        if last is not None and kind < 0.04:
            return attrs.evolve(last, turn_id=self.last_id[key])
        turn = self.new_turn(key)
        if last is not None and kind < 0.07:
            return attrs.evolve(turn, turn_id=max(0, self.last_id[key] - self.rng.randint(1, 3)))
        if last is not None and kind < 0.12:
            turn.turn_id = self.last_id[key]
            turn.revision = last.revision + self.rng.choice([0, 0, 1])
            if turn.revision == last.revision:
                return turn
        self.last_id[key] = turn.turn_id if turn.turn_id is not None else self.last_id.get(key, 0) + 1
        self.last_turn[key] = turn
        return turn

    def new_turn(self, key: tuple[str, str]) -> Turn:
        """Make the next turn of a session."""
        rng, number = self.rng, None
        if rng.random() < 0.5:
            number = self.last_id.get(key, 0) + (rng.randint(2, 5) if rng.random() < 0.08 else 1)
        turn = Turn(
            session_id=key[1],
            tenant=key[0],
            turn_id=number,
            replica=rng.choice([None, None, "r1", "r2"]),
            device=rng.choice([None, None, "g1"]),
            model=rng.choice([None, "big", "big", "big", "light"]) if rng.random() < 0.5 else "big",
            timestamp_s=self.clock if rng.random() < 0.85 else MISSING,
            replica_sample_s=self.sample_time(),
            device_sample_s=self.sample_time(),
        )
        if rng.random() < 0.06:
            number = max(0, self.last_id.get(key, 0) - rng.choice([0, 0, 1, -5]))
            done = rng.sample(DONE, rng.randint(0, 2))
            turn.applied = Receipt(rng.choice([key[1], key[1], "x"]), number, tuple(done), tenant=key[0])
        self.fill(turn, key)
        return turn

    def fill(self, turn: Turn, key: tuple[str, str]) -> None:
        """Give the turn values of the signals that the pack reads."""
        extra = {}
        brings = {"session": True, "replica": self.rng.random() < 0.5, "device": self.rng.random() < 0.5}
        for name in self.plan.compared:
            spec = self.plan.specs[name]
            if not brings[spec.scope]:
                continue
            value = self.value(spec, (*key, turn.replica or "") if spec.scope == "session" else (turn.replica or "",))
            if name in self.declared:
                extra[name] = value
            else:
                setattr(turn, name, value)
        turn.extra = extra or None

    def sample_time(self) -> float:
        """Give when a sample was measured: newer, the same again, older, or nobody said."""
        kind = self.rng.random()
        if kind < 0.4:
            return MISSING
        if kind < 0.75:
            self.sample_s = self.clock - self.rng.choice([0.0, 0.1, 2.0, 70.0])
        elif kind < 0.85:
            return self.sample_s - self.rng.uniform(0.0, 20.0)
        return self.sample_s

    def observation(self) -> Observation:
        """Make a sample of a replica, a device or both; sometimes too late."""
        scopes = self.rng.choice([["replica"], ["replica"], ["device"], ["replica", "device"]])
        arguments: dict[str, Any] = {"tenant": self.rng.choice(["", "", "t2"])}
        for scope in scopes:
            name = self.rng.choice([None, "r1", "r2"]) if scope == "replica" else self.rng.choice([None, "g1"])
            arguments[scope] = name
            for spec in self.plan.parts[scope].signals:
                arguments[spec.name] = self.value(spec, (name or "",))
        if self.rng.random() < 0.85:
            arguments["timestamp_s"] = self.clock if self.rng.random() < 0.8 else self.sample_s
        return Observation(arguments)

    # what

    def value(self, spec: SignalSpec, place: tuple[str, ...]) -> Any:
        """Give one input in a random mode."""
        mode = self.rng.choices(list(self.weights), list(self.weights.values()))[0]
        self.stream.modes[mode] += 1
        value = self.valid(spec)
        if mode == "missing":
            return None if spec.kind in ("enum", "array") else MISSING
        if mode in ("nan", "infinite", "mistyped"):
            return self.spoiled(spec, mode)
        if mode == "boundary":
            value = self.boundary(spec)
        if mode == "tie":
            ties = [v for (*_, unit), v in self.last_value.items() if unit == spec.unit] if place else []
            value = self.last_value.get((*place, spec.name), self.rng.choice(ties) if ties else value)
        self.last_value[(*place, spec.name)] = value
        if spec.kind not in ("enum", "array"):
            self.last_value["any", spec.name, spec.unit] = value
        return value

    def valid(self, spec: SignalSpec) -> Any:
        """Give a value inside the domain, around what rules ask for."""
        if spec.kind == "enum":
            return self.rng.choice(spec.values)
        if spec.kind == "bool":
            return self.rng.random() < 0.5
        if spec.kind == "array":
            whole = spec.dtype == "int64"
            return [self.rng.randint(0, 9) if whole else self.rng.gauss(0.0, 1.0) for _ in range(LENGTH)]
        top = TYPICAL.get(spec.unit, 100.0)
        value = self.rng.uniform(max(spec.lo, 0.0), min(spec.hi, top))
        if spec.unit in ("ms", "us"):
            value *= self.unit_change(spec.name)
        return float(round(value)) if spec.kind == "count" else value

    def unit_change(self, name: str) -> float:
        """Let a signal sometimes come in another unit for a while."""
        left = self.wrong_unit.get(name, 0)
        self.wrong_unit[name] = left - 1 if left else 40 * (self.rng.random() < 0.02)
        return 1000.0 if left else 1.0

    def boundary(self, spec: SignalSpec) -> Any:
        """Give exactly a threshold of the pack, or an end of the domain."""
        if spec.kind in ("enum", "bool"):
            return spec.values[0] if spec.values else 1
        if spec.kind == "array":
            return [0] * LENGTH
        ends = [spec.lo, -0.0 if spec.lo == 0.0 else spec.lo, spec.hi]
        return self.rng.choice(self.thresholds.get(spec.unit, []) * 2 + ends)

    def spoiled(self, spec: SignalSpec, mode: str) -> Any:
        """Give a value that is no measurement."""
        if mode == "mistyped":
            return self.rng.choice(["12", object(), [[1.0], [2.0]]])
        bad = math.nan if mode == "nan" else self.rng.choice([math.inf, -math.inf])
        if spec.kind == "enum":
            return "no-such-word" if mode == "nan" else bad
        return [bad] * LENGTH if spec.kind == "array" else bad
