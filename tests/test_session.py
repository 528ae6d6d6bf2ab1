"""The memory of conversations: bounded, oldest first, broken ones last, on an injected clock."""

from __future__ import annotations

import logging

import pytest
import structlog

from stabilitykit import UsageError
from tests.engines import Turn, breaker, play


class Clock:
    """Time as the test says."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        """Give the time."""
        return self.now


@pytest.fixture
def clock():
    """Give a clock that stands still."""
    return Clock()


def keys(engine):
    """Name the sessions held, least recently used first."""
    return [k[1] for k in (*engine.sessions.live, *engine.sessions.kept)]


@pytest.mark.capability("issue 2 §2: SessionStore: bounded, least recently used goes first")
def test_lru():
    """The one used longest ago leaves; reading its state by peek or export does not use it."""
    engine = breaker(capacity=3)
    for name in "abc":
        play(engine, [10.0], session=name)
    play(engine, [10.0], session="a")
    engine.peek(Turn(session_id="b", itl_ms=10.0))
    play(engine, [10.0], session="d")
    assert keys(engine) == ["c", "a", "d"]
    assert engine.sessions.dropped == {"ttl": 0, "capacity": 1}
    assert engine.evaluate(Turn(session_id="b", itl_ms=10.0)).turn_id == 1
    assert len(engine.sessions) == 3


@pytest.mark.capability("issue 2 §2: SessionStore: TTL on an injected clock")
def test_ttl(clock):
    """Silence longer than the TTL ends a session, whoever asks; a turn in time renews it."""
    engine = breaker(ttl_s=10.0, clock=clock)
    play(engine, [90.0])
    clock.now += 10.0
    assert play(engine, [90.0]) == ["broken"]
    clock.now += 10.1
    assert engine.peek(Turn(session_id="a", itl_ms=10.0)).turn_id == 1
    assert play(engine, [90.0]) == ["healthy"]
    clock.now += 11.0
    for verb in (engine.export, lambda name: engine.fork(name, "b")):
        with pytest.raises(UsageError, match="no such session"):
            verb("a")
    assert engine.sessions.dropped == {"ttl": 2, "capacity": 0}


@pytest.mark.capability("issue 2 §2: SessionStore: TTL on an injected clock")
def test_clock_jumps(clock):
    """A clock that jumps back or freezes ages nobody and raises nothing."""
    engine = breaker(ttl_s=10.0, clock=clock)
    for jump in (0.0, -1000.0, 5.0, -1e9, 0.0):
        clock.now += jump
        play(engine, [10.0])
    assert engine.sessions.find(("", "a")).last == 5


def test_old_sessions_leave_without_being_asked(clock):
    """New sessions clear out those that aged, two a shelf and time: the store does not fill with the dead."""
    engine = breaker(ttl_s=10.0, clock=clock)
    for k in range(100):
        play(engine, [10.0], session=f"old{k}")
    clock.now += 11.0
    for k in range(50):
        play(engine, [10.0], session=f"new{k}")
    assert len(engine.sessions) == 50


@pytest.mark.capability("issue 2 §2: broken sessions are kept longest and never dropped silently")
def test_broken_ones_are_kept(caplog):
    """Under pressure all others leave first; when a broken one must, it is logged (hashed) and counted."""
    engine = breaker(capacity=4, log_key=b"k")
    caplog.set_level(logging.INFO, "stabilitykit")
    play(engine, [90.0, 90.0], session="bad-1")
    play(engine, [90.0, 90.0], session="bad-2")
    for k in range(50):
        play(engine, [10.0], session=f"good{k}")
    assert set(keys(engine)) >= {"bad-1", "bad-2"}
    assert engine.sessions.dropped_in_trouble == 0
    caplog.clear()
    for k in range(3, 6):
        play(engine, [90.0, 90.0], session=f"bad-{k}")
    assert keys(engine) == ["bad-2", "bad-3", "bad-4", "bad-5"]
    lost = [r.getMessage() for r in caplog.records if "session_dropped" in r.getMessage()]
    assert len(lost) == engine.sessions.dropped_in_trouble == 1
    assert "why=capacity state=broken" in lost[0]
    assert "bad-1" not in caplog.text


def test_a_recovered_session_is_as_mortal_as_any():
    """Leaving the worst state takes the privilege away."""
    engine = breaker(capacity=2)
    play(engine, [90.0, 90.0], session="a")
    assert ("", "a") in engine.sessions.kept
    play(engine, [10.0] * 8, session="a")
    assert ("", "a") in engine.sessions.live
    play(engine, [10.0], session="b")
    play(engine, [10.0], session="c")
    assert keys(engine) == ["b", "c"]


@pytest.mark.parametrize("capacity", [0, -1])
def test_no_room_at_all(capacity):
    """A store that holds nothing is misuse, told at once."""
    with pytest.raises(UsageError, match="capacity"):
        breaker(capacity=capacity)


def test_a_store_of_one():
    """The smallest store works: forks and restores replace what is there."""
    engine = breaker(capacity=1)
    play(engine, [90.0], session="a")
    blob = engine.export("a")
    engine.fork("a", "b")
    assert keys(engine) == ["b"]
    assert play(engine, [90.0], session="b") == ["broken"]
    engine.restore(blob)
    assert play(engine, [90.0], session="a") == ["broken"]


@pytest.mark.capability("issue 2 §2: memory stays flat however many sessions come")
def test_many_sessions_flat():
    """50,000 distinct sessions need the rows of those that are held, no more."""
    engine = breaker(capacity=1000)
    for k in range(2000):
        engine.evaluate(Turn(session_id=str(k), itl_ms=90.0))
    pages = [len(rows._pages) for rows in engine._live.rows]
    for k in range(2000, 50_000):
        engine.evaluate(Turn(session_id=str(k), itl_ms=90.0))
    assert [len(rows._pages) for rows in engine._live.rows] == pages
    assert len(engine.sessions) == 1000
    assert engine.sessions.dropped["capacity"] == 49_000


def test_structlog_is_used_where_it_is_configured():
    """The same events go to structlog when the host has set it up."""
    seen = []

    def note(_, __, event):
        seen.append(event)
        raise structlog.DropEvent

    structlog.configure(processors=[note])
    try:
        play(breaker(), [90.0, 90.0], session="secret")
    finally:
        structlog.reset_defaults()
    assert [(e["event"], e["state"], e["rules"]) for e in seen] == [("state_changed", "broken", ["slow"])]
    assert "secret" not in repr(seen)
