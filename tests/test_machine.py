"""The machine: every small guard and every counter against the specification in plain Python."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import numpy as np
import pytest

from stabilitykit.engine import Engine
from stabilitykit.kernels.blob import Blob
from stabilitykit.machine import MACHINE_HEADER, build_machine_tables, machine_words, step_machine
from stabilitykit.turn import Turn

STATES = ("calm", "hot", "down")


@attrs.frozen
class Guard:
    """A checked guard."""

    op: str
    name: str = ""
    value: float = 0.0
    n: int = 1
    args: tuple[Guard, ...] = ()


@attrs.frozen
class Facts:
    """What a guard asks about a rule."""

    id: str
    severity: str
    tags: tuple[str, ...] = ()


@attrs.frozen
class Move:
    """A transition."""

    from_: tuple[str, ...]
    to: str
    when: Guard | None = None
    for_turns: int = 1
    after: int = 0


RULES = (Facts("a", "info"), Facts("b", "warning", ("kv",)), Facts("c", "critical", ("kv",)))
ANY = Guard("atleast", value=1.0)
GUARDS = [
    ANY,
    Guard("not", args=(ANY,)),
    Guard("atleast", value=0.0, n=2),
    Guard("atleast", value=2.0),
    Guard("atleast", name="kv", value=0.0, n=2),
    Guard("atleast", name="none such", value=0.0),
    Guard("not", args=(Guard("atleast", name="none such", value=0.0),)),
    Guard("rule", name="a"),
    Guard("rule", name="elsewhere"),
    Guard("and", args=(Guard("rule", name="a"), Guard("not", args=(Guard("rule", name="b"),)))),
    Guard("or", args=(Guard("rule", name="a"), Guard("not", args=(Guard("rule", name="b"),)))),
    Guard("not", args=(Guard("and", args=(Guard("rule", name="a"), Guard("rule", name="c"))),)),
]


def verdict(guard: Guard | None, levels: dict[str, int]) -> int:
    """Give what section 7 of the specification gives."""
    if guard is None:
        return 2
    if guard.op == "not":
        return 2 - verdict(guard.args[0], levels)
    if guard.op in ("and", "or"):
        both = [verdict(a, levels) for a in guard.args]
        return min(both) if guard.op == "and" else max(both)
    order = ("info", "warning", "critical")
    if guard.op == "rule":
        mine = [r.id for r in RULES if r.id == guard.name]
    else:
        mine = [
            r.id for r in RULES if order.index(r.severity) >= guard.value and (not guard.name or guard.name in r.tags)
        ]
    if sum(levels[i] == 2 for i in mine) >= guard.n:
        return 2
    return 1 if mine and all(levels[i] == 1 for i in mine) else 0


class Machine:
    """The tables of some transitions and the memory of one instance, run by the plain kernel."""

    def __init__(self, moves: list[Move], bits: tuple[int, ...] = (0, 1, 2), words: int = 1) -> None:
        blob = Blob(MACHINE_HEADER)
        self.bits = dict(zip("abc", bits, strict=True))
        build_machine_tables(STATES, moves, RULES, self.bits, words, blob, 0)
        self.ti, _, self.tu = blob.arrays()
        self.words = words
        self.u = np.zeros(machine_words(len(moves)), np.uint64)

    def step(self, levels: dict[str, int]) -> tuple[str, bool]:
        """Step with a verdict for each rule; gives the state and whether it was entered."""
        out = np.zeros(2 * self.words, np.uint64)
        for name, level in levels.items():
            bit = self.bits[name]
            for group, wanted in ((0, 2), (1, 1)):
                out[group * self.words + (bit >> 6)] |= np.uint64(int(level == wanted) << (bit & 63))
        before = int(self.u[0])
        word = int(step_machine(self.u, 0, self.words, out, self.ti, self.tu, 0))
        assert word >> 8 & 255 == before
        assert word & 255 == int(self.u[0])
        return STATES[word & 255], bool(word >> 16)


class Plain:
    """The same by the words of the specification."""

    def __init__(self, moves: list[Move]) -> None:
        self.moves, self.state, self.dwell = moves, "calm", 0
        self.counts = [0] * len(moves)

    def step(self, levels: dict[str, int]) -> tuple[str, bool]:
        """Step once."""
        self.dwell += 1
        taken = None
        for k, move in enumerate(self.moves):
            if self.state not in move.from_:
                continue
            v = verdict(move.when, levels)
            self.counts[k] = self.counts[k] + 1 if v == 2 else 0 if v == 0 else self.counts[k]
            if taken is None and v == 2 and self.counts[k] >= move.for_turns and self.dwell >= move.after:
                taken = move
        if taken is None:
            return self.state, False
        self.state, self.dwell, self.counts = taken.to, 0, [0] * len(self.moves)
        return self.state, True


LEVELS = [dict(zip("abc", levels, strict=True)) for levels in itertools.product(range(3), repeat=3)]


@pytest.mark.capability("issue 2 §3: machine and guards, every small machine exhaustively")
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize(("bits", "words"), [((0, 1, 2), 1), ((63, 64, 130), 3)])
def test_every_guard_on_every_verdict(guard: Guard, bits: tuple[int, ...], words: int) -> None:
    """27 combinations of true, unknown and false rules, in one word and across words."""
    for levels in LEVELS:
        machine = Machine([Move(("calm",), "hot", guard)], bits, words)
        assert machine.step(levels) == (("hot", True) if verdict(guard, levels) == 2 else ("calm", False)), levels


MACHINES: list[list[Move]] = [
    [Move(("calm",), "hot", ANY, for_turns=2), Move(("hot",), "calm", Guard("not", args=(ANY,)), for_turns=3)],
    [
        Move(("calm", "hot"), "down", Guard("rule", name="c")),
        Move(("calm",), "hot", ANY),
        Move(("down",), "calm", after=2),
    ],
    [Move(("calm",), "hot", ANY, after=3), Move(("hot",), "down", None, after=1), Move(("down",), "calm", ANY, 2, 2)],
    [Move(("calm", "hot"), "hot", ANY, for_turns=2), Move(("hot",), "calm", Guard("not", args=(ANY,)))],
]
STEPS: list[dict[str, Any]] = [
    {"a": 0, "b": 0, "c": 0},
    {"a": 0, "b": 2, "c": 0},
    {"a": 2, "b": 1, "c": 2},
    {"a": 1, "b": 1, "c": 1},
]


@pytest.mark.capability("issue 2 §3: machine and guards, every small machine exhaustively")
@pytest.mark.parametrize("moves", MACHINES)
def test_small_machines_exhaustively(moves: list[Move]) -> None:
    """Every sequence of six turns out of calm, warned, critical and blind: 4,096 of them."""
    for sequence in itertools.product(STEPS, repeat=6):
        machine, plain = Machine(moves), Plain(moves)
        for levels in sequence:
            assert machine.step(levels) == plain.step(levels), sequence


def test_one_step_a_turn() -> None:
    """A transition out of the state just entered waits for the next turn."""
    machine = Machine([Move(("calm",), "hot"), Move(("hot",), "down")])
    assert [machine.step(LEVELS[0]) for _ in range(3)] == [("hot", True), ("down", True), ("down", False)]


def test_the_most_states_step_right(tmp_path):
    """A chain of as many states as a pack may have ends in the last one and stays there."""
    names = [f"s{k}" for k in range(64)]
    steps = "\n".join(f"    - {{from: [{a}], to: {b}, after: 1 turns}}" for a, b in itertools.pairwise(names))
    path = tmp_path / "chain.yaml"
    path.write_text(
        "stabilitykit: 1\npack: chain\nrules:\n  - {rule: r, when: itl_ms > 80 ms}\nmachine:\n  initial: s0\n"
        f"  states: [{', '.join('{state: ' + n + '}' for n in names)}]\n  transitions:\n{steps}\n"
    )
    for compiled in (None, False):
        engine = Engine.load(str(path), compiled=compiled)
        seen = [engine.evaluate(Turn(session_id="a", itl_ms=1.0)).state for _ in range(70)]
        assert seen == [*names[1:], *["s63"] * 7]
