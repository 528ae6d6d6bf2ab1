from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
import pytest

from stabilitykit.decision import Action, Fault, Match
from stabilitykit.rules.case_run import run_cases
from stabilitykit.rules.cases import read_cases
from stabilitykit.rules.pack import Pack
from stabilitykit.turn import Turn, is_missing
from tests.rules.packs import HEAD, load


@attrs.frozen
class Answer:
    """What the fake engine says."""

    state: str
    matches: tuple[Match, ...] = ()
    actions: tuple[Action, ...] = ()
    faults: tuple[Fault, ...] = ()
    scopes: Mapping[str, str] = attrs.field(factory=dict)


class Fake:
    """Matches `slow` above 80 ms, fires it on the first such turn, and remembers what it was given."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.samples: list[dict[str, Any]] = []
        self.fired = False
        self.replica: dict[str, str] = {}

    def evaluate(self, turn: Turn) -> Answer:
        """Take a turn."""
        self.turns.append(turn)
        faults = (Fault("invalid", "itl_ms"),) if turn.itl_ms != turn.itl_ms and not is_missing(turn.itl_ms) else ()
        if not turn.itl_ms > 80:
            return Answer("healthy", faults=faults, scopes=self.replica)
        match = Match("slow", "warning", "session", not self.fired)
        self.fired = True
        return Answer("warning", (match,), (Action("throttle", {}),) if match.fired else (), faults, self.replica)

    def observe(self, **sample: Any) -> Answer:
        """Take a sample."""
        self.samples.append(sample)
        self.replica = {"replica": "warning"}
        return Answer("warning")


@pytest.fixture
def pack(tmp_path) -> Pack:
    """Give a pack with the names the fake engine uses."""
    text = (
        HEAD
        + "signals:\n  mood: {values: [calm]}\nrules:\n  - {rule: slow, when: itl_ms > 80 ms, do: [{throttle: {}}]}\n"
    )
    return load(tmp_path, text)


def run(pack: Pack, text: str) -> tuple[list[str], Fake]:
    """Run one case and give the failures and the engine."""
    engines: list[Fake] = []

    def make() -> Fake:
        engines.append(Fake())
        return engines[-1]

    file = read_cases(("cases:\n  - name: one\n" + text).encode(), "c.yaml", pack)
    return [str(f) for f in run_cases(file, pack, make)], engines[-1]


@pytest.mark.capability("issue 2 §3: cases: state, matches, fires, actions and faults are exact sets")
def test_a_case_that_holds_has_no_failures(pack):
    """State, matched and fired rules, actions and faults are compared as exact sets."""
    text = (
        "    turns: [{itl_ms: 40, repeat: 2}, {itl_ms: 90, repeat: 2}, {itl_ms: invalid}]\n    expect:\n"
        "      - {turn: 2, state: healthy, rules: [], actions: []}\n"
        "      - {turn: 3, state: warning, rules: [slow], fired: [slow], actions: [throttle]}\n"
        "      - {turn: 4, rules: [slow], fired: [], actions: []}\n"
        "      - {turn: last, faults: [invalid: itl_ms], state: healthy}\n      - {turn: last, faults: [invalid]}\n"
    )
    assert run(pack, text)[0] == []


@pytest.mark.capability("issue 2 §3: cases: state, matches, fires, actions and faults are exact sets")
@pytest.mark.parametrize(
    ("expect", "message"),
    [
        ("state: healthy", "state is warning, not healthy"),
        ("rules: []", "rules are {slow}, not {}"),
        ("fired: []", "fired are {slow}, not {}"),
        ("actions: [throttle, emit_metric]", "actions are {throttle}, not {emit_metric, throttle}"),
        ("faults: [invalid]", "faults are {}, not {invalid}"),
        ("faults: [invalid: itl_ms]", "faults are {}, not {invalid: itl_ms}"),
        ("scopes: {replica: healthy}", "the replica is not there, not healthy"),
    ],
)
def test_a_difference_is_told_with_its_place(pack, expect, message):
    """A failure names file, line, case and what was different."""
    failures, _ = run(pack, f"    turns: [{{itl_ms: 90}}]\n    expect: {{{expect}}}\n")
    assert failures == [f"c.yaml:4: one: {message}"]


def test_faults_that_nobody_expects_are_a_difference(pack):
    """Exact sets: an extra fault fails the case."""
    failures, _ = run(pack, "    turns: [{itl_ms: invalid}]\n    expect: {faults: []}\n")
    assert failures == ["c.yaml:4: one: faults are {invalid: itl_ms}, not {}"]


def test_turns_are_numbered_and_values_reach_the_turn(pack):
    """Gaps skip ids, receipts name the turn before, own signals go into `extra`, arrays get their dtype."""
    text = (
        "    turns: [{repeat: 2}, {itl_ms: 9, gap: 3, mood: calm, embedding: [1, 2], applied: [throttle], repeat: 2}]\n"
        "    expect: {state: healthy}\n"
    )
    turns = run(pack, text)[1].turns
    assert [t.turn_id for t in turns] == [1, 2, 6, 7]
    assert turns[2].extra == {"mood": "calm"}
    assert turns[0].extra is None
    assert turns[2].embedding.dtype == np.float32
    assert turns[2].applied is not None
    assert (turns[2].applied.turn_id, turns[2].applied.done, turns[3].applied) == (2, ("throttle",), None)


def test_samples_are_observed_and_do_not_count_as_turns(pack):
    """Without any turn, the last sample's decision is what is expected about."""
    text = "    turns: [{}, {observe: {replica: r1, kv_usage_ratio: 0.5}}, {}]\n"
    text += "    expect: {turn: 2, scopes: {replica: warning}}\n"
    failures, engine = run(pack, text)
    assert failures == []
    assert engine.samples == [{"replica": "r1", "kv_usage_ratio": 0.5}]
    assert run(pack, "    turns: [{observe: {kv_usage_ratio: 0.5}}]\n    expect: {state: warning}\n")[0] == []
