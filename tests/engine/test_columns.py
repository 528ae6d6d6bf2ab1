"""Columnar replay decides as evaluate does, turn by turn, and leaves the same memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stabilitykit.engine import Engine
from stabilitykit.errors import UnknownSignal, UsageError
from stabilitykit.kernels.compile import is_available
from stabilitykit.turn import Turn

PACK = """\
stabilitykit: 1
pack: columns
extends: [base]
signals:
  mood: {unit: ratio, doc: how it feels}
detectors:
  itl: {type: baseline, input: itl_ms}
rules:
  - rule: itl-slow
    when: itl_ms > 60 ms and delta(itl_ms) > 0 ms
    for: 2 turns
    severity: critical
    do: [{throttle: {}}]
  - rule: itl-high
    when: itl_ms > itl.mean or mood < 0.5
    count: {at_least: 2, in: 3 turns}
  - rule: cut
    when: finish_reason == length and context_usage_ratio > 50 %
    on_missing: skip
    cooldown: 2 turns
    do: [{emit_metric: {}}]
  - rule: busy
    when: waiting_requests > 3
    for: 2 samples
    severity: info
  - rule: busy-here
    when: rule:busy and itl_ms > 30 ms
"""
NAMES = ("itl_ms", "input_tokens", "context_window_tokens", "waiting_requests", "mood", "finish_reason")

number = st.one_of(st.none(), st.sampled_from([-1.0, 0.0, 25.0, 61.0, 70.0, 0.4, 4.0, 2000.0, float("inf")]))
row = st.fixed_dictionaries(
    {
        "itl_ms": number,
        "input_tokens": number,
        "context_window_tokens": st.sampled_from([None, 4096.0, 3000.0]),
        "waiting_requests": number,
        "mood": number,
        "finish_reason": st.sampled_from([None, "stop", "length", "odd"]),
        "session": st.sampled_from(["a", "b", "c"]),
        "replica": st.sampled_from(["r", "s"]),
        "timestamp_s": st.one_of(st.none(), st.floats(0, 200)),
        "replica_sample_s": st.one_of(st.none(), st.floats(0, 200)),
    }
)


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """Write the pack."""
    path = tmp_path_factory.mktemp("pack") / "columns.yaml"
    path.write_text(PACK, encoding="utf-8")
    return str(path)


def columns_of(rows):
    """Give the columns of rows: NaN or None is missing."""
    columns = {}
    for name in (*NAMES, "timestamp_s", "replica_sample_s"):
        values = [r[name] for r in rows]
        if name == "finish_reason":
            columns[name] = np.array(values, dtype=object)
        else:
            columns[name] = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    return columns


def turn_of(r):
    """Give the turn of a row."""
    given = {k: v for k, v in r.items() if v is not None and k not in ("session", "mood")}
    extra = None if r["mood"] is None else {"mood": r["mood"]}
    return Turn(session_id=r["session"], extra=extra, **given)


def check_replay(pack, rows, compiled):
    """Replay rows in two pieces and one by one, and compare everything."""
    by_columns, by_turns = Engine.load(pack, compiled=compiled), Engine.load(pack, compiled=compiled)
    half = len(rows) // 2
    for piece in (rows[:half], rows[half:]):
        if not piece:
            continue
        got = by_columns.replay(
            columns_of(piece), session=[r["session"] for r in piece], replica=[r["replica"] for r in piece]
        )
        decisions = [by_turns.evaluate(turn_of(r)) for r in piece]
        assert [got.states[k] for k in got.state] == [d.state for d in decisions]
        assert [got.states[k] for k in got.previous] == [d.previous for d in decisions]
        for rule in by_turns.pack.rules:
            assert got.matched(rule.id).tolist() == [any(m.rule == rule.id for m in d.matches) for d in decisions]
            assert got.fired(rule.id).tolist() == [rule.id in d.fired for d in decisions]
        invalid = [any(f.kind == "invalid" and f.signal in NAMES for f in d.faults) for d in decisions]
        assert got.invalid.tolist() == invalid
    for name in {r["session"] for r in rows}:
        last = Turn(session_id=name, itl_ms=65.0)
        a, b = by_columns.peek(last), by_turns.peek(last)
        assert a.to_dict() == b.to_dict()


@pytest.mark.skipif(not is_available(), reason="no compiler here")
@pytest.mark.capability("issue 2 §8: columnar replay decides exactly as evaluate does", figure="columnar")
@settings(max_examples=60)
@given(st.lists(row, min_size=1, max_size=24))
def test_compiled(pack, rows):
    """The compiled batch agrees with the compiled evaluate."""
    check_replay(pack, rows, None)


@settings(max_examples=15)
@given(st.lists(row, min_size=1, max_size=12))
def test_uncompiled(pack, rows):
    """The same source uncompiled agrees too."""
    check_replay(pack, rows, False)


@pytest.fixture
def engine(pack):
    """Load an uncompiled engine."""
    return Engine.load(pack, compiled=False)


def test_a_replayed_session_goes_on(engine):
    """Turn ids continue, the last decision is stored, a duplicate is recognised."""
    engine.replay({"itl_ms": [20.0, 30.0]}, session="x", turn=[4, 9])
    stored = engine.evaluate(Turn(session_id="x", turn_id=9, itl_ms=30.0))
    assert stored.turn_id == 9
    assert stored.faults == ()
    assert engine.evaluate(Turn(session_id="x")).turn_id == 10
    assert engine.evaluate(Turn(session_id="x", turn_id=4)).faults[0].kind == "stale"


def test_broken_sessions_are_kept(engine):
    """A session that ends in the most severe state is dropped last."""
    engine.replay({"itl_ms": [61.0, 70.0, 80.0]}, session="x")
    assert engine.sessions.find(("", "x")).kept


@pytest.mark.parametrize(
    ("columns", "names", "error"),
    [
        ({"itl_ms": [1.0], "ttft_ms": [1.0, 2.0]}, {}, UsageError),
        ({}, {}, UsageError),
        ({"itl_sm": [1.0]}, {}, UnknownSignal),
        ({"embedding": [[1.0]]}, {}, UsageError),
        ({"itl_ms": [1.0, 2.0]}, {"turn": [2, 2]}, UsageError),
        ({"itl_ms": [1.0, 2.0]}, {"turn": [2, 1]}, UsageError),
        ({"itl_ms": [1.0]}, {"turn": [-1]}, UsageError),
        ({"itl_ms": [1.0]}, {"turn": [1.5]}, UsageError),
        ({"itl_ms": [1.0]}, {"session": [7]}, UsageError),
        ({"itl_ms": [1.0]}, {"session": None}, UsageError),
        ({"itl_ms": [1.0]}, {"session": ["x" * 129]}, UsageError),
        ({"itl_ms": [1.0], "timestamp_s": ["noon"]}, {}, UsageError),
        ({"itl_ms": 1.0}, {}, UsageError),
        ({"itl_ms": [[1.0, 2.0], [3.0]]}, {}, UsageError),
        ({"itl_ms": np.ones((2, 2))}, {}, UsageError),
        ({"finish_reason": [["stop"]]}, {}, UsageError),
        ({"itl_ms": [1.0]}, {"session": [["a"]]}, UsageError),
        ({"itl_ms": [1.0]}, {"session": 7}, UsageError),
        ({"itl_ms": [1.0]}, {"turn": np.array([2**63], np.uint64)}, UsageError),
    ],
)
def test_misuse_changes_nothing(engine, columns, names, error):
    """What cannot be replayed is refused before anything moves."""
    with pytest.raises(error):
        engine.replay(columns, **names)
    assert len(engine.sessions) == 0


def test_too_many_sessions(pack):
    """More sessions than the engine may hold are refused, not dropped on the way."""
    small = Engine.load(pack, compiled=False, capacity=2)
    with pytest.raises(UsageError, match="do not fit"):
        small.replay({"itl_ms": [1.0] * 3}, session=["a", "b", "c"])


def test_unknown_rule(engine):
    """Asking for a rule that the pack does not have is misuse."""
    with pytest.raises(UsageError, match="no rule"):
        engine.replay({"itl_ms": [1.0]}).matched("nosuch")


def test_too_many_replicas(engine):
    """More replicas than the engine may hold are refused: the first ones would be dropped on the way."""
    count = engine._scopes.capacity + 1
    with pytest.raises(UsageError, match="too many"):
        engine.replay({"itl_ms": np.ones(count)}, replica=[f"r{k}" for k in range(count)])


def test_sessions_that_grow_old_on_the_way(pack, monkeypatch):
    """A session that is about to be forgotten is used again before new ones make the engine tidy up."""
    now = [0.0]
    engine = Engine.load(pack, compiled=False, ttl_s=10.0, clock=lambda: now[0])
    engine.replay({"itl_ms": [20.0]}, session="old")
    now[0] = 9.5
    find = engine.sessions.find

    def slow_find(key):
        found = find(key)
        now[0] = 10.5
        return found

    monkeypatch.setattr(engine.sessions, "find", slow_find)
    engine.replay({"itl_ms": [21.0] * 4}, session=["old", "a", "b", "c"])
    assert {key[1] for key in engine.sessions.live} == {"old", "a", "b", "c"}


NARROW = """\
stabilitykit: 1
pack: narrow
extends: [base]
rules:
  - {rule: itl-slow, when: itl_ms > 60 ms, for: 2 turns, severity: critical}
"""


@pytest.mark.parametrize("compiled", [None, False])
def test_a_pack_of_sessions_only(tmp_path, compiled):
    """A pack that reads nothing of a replica or a device replays as it evaluates."""
    path = tmp_path / "narrow.yaml"
    path.write_text(NARROW)
    values = [50.0, 70.0, 70.0, 80.0, 40.0, 40.0]
    alone = Engine.load(str(path), compiled=compiled)
    states = [alone.evaluate(Turn(session_id="a", itl_ms=v)).state for v in values]
    got = Engine.load(str(path), compiled=compiled).replay({"itl_ms": np.array(values)}, session="a")
    assert "broken" in states
    assert [got.states[k] for k in got.state] == states
