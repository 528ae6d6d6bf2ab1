"""Replay: entries in order, streams merged on time."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.engine import Engine
from stabilitykit.engine.replay import merge_on_time, replay
from stabilitykit.sample import Sample
from stabilitykit.turn import MISSING, Turn


def test_replay_is_evaluate_and_observe():
    """Each step holds the entry and what evaluate or observe says to it."""
    entries: list[Any] = [Turn(session_id="a"), Sample(replica="r", timestamp_s=1.0, signals={"waiting_requests": 1.0})]
    first, second = replay(Engine.load("base", compiled=False), entries)
    assert (first.entry, first.decision.scope) == (entries[0], "session")
    assert (second.entry, second.decision.scope) == (entries[1], "replica")


def test_replay_is_lazy():
    """An endless log can be replayed."""
    endless = (Turn(session_id="a") for _ in itertools.count())
    steps = replay(Engine.load("base", compiled=False), endless)
    assert [step.decision.turn_id for step in itertools.islice(steps, 3)] == [1, 2, 3]


times = st.lists(st.one_of(st.just(MISSING), st.floats(0, 9)), max_size=6)


@given(st.lists(times, max_size=3))
def test_merge_keeps_everything_in_the_order_of_time(streams):
    """Nothing is lost; known times never go back; an unknown one stays behind the one before it."""
    turns = [[Turn(session_id=str(k), timestamp_s=t) for t in stream] for k, stream in enumerate(streams)]
    merged: list[Any] = list(merge_on_time(turns))
    assert sorted(map(id, merged)) == sorted(id(t) for stream in turns for t in stream)
    known = [t.timestamp_s for t in merged if t.timestamp_s == t.timestamp_s]
    assert known == sorted(known)


def test_merge_without_times_is_one_after_the_other():
    """Streams without any timestamp follow each other."""
    a, b = [Turn(session_id="a"), Turn(session_id="b")], [Turn(session_id="c")]
    merged: list[Any] = list(merge_on_time([a, b]))
    assert [t.session_id for t in merged] == ["a", "b", "c"]


def test_merge_takes_equal_times_from_the_earlier_stream():
    """Of equal times the stream named first goes first."""
    a, b = [Turn(session_id="a", timestamp_s=1.0)], [Turn(session_id="b", timestamp_s=1.0)]
    merged: list[Any] = list(merge_on_time([b, a]))
    assert [t.session_id for t in merged] == ["b", "a"]
