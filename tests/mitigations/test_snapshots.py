from __future__ import annotations

import copy
import json
import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit import UsageError
from stabilitykit.mitigations.directives import RollbackSnapshot
from stabilitykit.mitigations.outcome import Lent
from stabilitykit.mitigations.snapshots import Snapshot, SnapshotRing, rollback_snapshot

VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=6,
)
MESSAGES = st.lists(st.dictionaries(st.text(max_size=4), VALUES, max_size=3), max_size=6)


@pytest.mark.capability("issue 5 §5: a snapshot gives back exactly the messages and bytes that were taken")
@given(st.lists(st.tuples(MESSAGES, st.binary(max_size=40)), min_size=1, max_size=6), st.integers(1, 8))
def test_what_was_taken_comes_back(taken, keep):
    """Any JSON, changed in any way from one turn to the next; what the host does to it afterwards does not matter."""
    ring: Any = SnapshotRing(keep)
    want = copy.deepcopy(taken)
    for turn_id, (messages, state) in enumerate(taken):
        assert ring.take(turn_id, messages, state)
        messages.append({"late": 1})
    for turns in range(len(taken)):
        found = ring.back(turns)
        if turns >= keep:
            assert found is None
            continue
        assert (found.messages, found.state) == want[len(taken) - 1 - turns]
        assert json.dumps(found.messages) == json.dumps(want[len(taken) - 1 - turns][0])
        found.messages.append({"mine": 1})


def grown(turns, words=60):
    """Give a conversation turn by turn, its texts random words."""
    draw = random.Random(3)
    chat: list[dict[str, str]] = [{"role": "system", "content": "Be kind."}]
    for _ in range(turns):
        for role in ("user", "assistant"):
            chat.append({"role": role, "content": " ".join(str(draw.random()) for _ in range(words))})
        yield copy.deepcopy(chat)


@pytest.mark.capability("issue 5 §5: snapshots are delta-compressed and bounded in number and bytes")
def test_size():
    """Eight snapshots of a growing conversation take little more than one; a trimmed one costs what was trimmed."""
    ring: Any = SnapshotRing(keep=8)
    for turn_id, chat in enumerate(grown(20)):
        ring.take(turn_id, chat)
    alone = sum(len(json.dumps(message)) for message in chat)
    assert len(ring.turn_ids) == 8
    assert alone <= ring.nbytes < alone + 8 * 100
    trimmed = [*chat[:1], *chat[21:]]
    ring.take(20, trimmed)
    assert ring.back(1).messages == chat
    assert ring.nbytes < alone + 8 * 100


@given(st.lists(st.integers(1, 60), min_size=1, max_size=12), st.integers(100, 2000))
def test_bytes_are_bounded(sizes, limit):
    """Whatever is taken; what is too large alone is not kept, and going back counts from it all the same."""
    ring: Any = SnapshotRing(keep=100, max_bytes=limit)
    for turn_id, size in enumerate(sizes):
        messages = [{"content": "x" * 50 * size}]
        is_kept = ring.take(turn_id, messages)
        assert is_kept is (len(json.dumps(messages[0])) <= limit)
        assert ring.nbytes <= limit
        now = ring.back(0)
        assert is_kept is (now is not None and now.turn_id == turn_id)
        earlier = ring.back(1)
        assert earlier is None or earlier.turn_id < turn_id


def test_turns():
    """Without a snapshot of that very turn the next earlier one; a turn taken again replaces it and the later ones."""
    ring: Any = SnapshotRing()
    assert ring.back() is None
    for turn_id in (1, 2, 5, 6):
        ring.take(turn_id, [{"content": str(turn_id)}])
    assert [ring.back(k).turn_id for k in (0, 1, 2, 4, 5)] == [6, 5, 2, 2, 1]
    assert ring.back(6) is None
    ring.take(5, [{"content": "again"}])
    assert ring.turn_ids == (1, 2, 5)
    assert ring.back(0).messages == [{"content": "again"}]
    ring.forget_from(0)
    assert (ring.turn_ids, ring.back(0), ring.nbytes) == ((), None, 0)


@pytest.mark.parametrize("value", [(1,), {1: 2}, b"x", math.nan, {3}])
def test_no_json(value):
    """What would come back as something else is refused, and nothing changes."""
    ring: Any = SnapshotRing()
    ring.take(1, [{"content": "a"}])
    with pytest.raises(UsageError, match="not JSON"):
        ring.take(1, [{"content": value}])
    assert ring.back(0).messages == [{"content": "a"}]


@pytest.mark.parametrize("bounds", [(0, 1), (1, 0)])
def test_bad_bounds(bounds):
    """A ring that could keep nothing is misuse."""
    with pytest.raises(UsageError):
        SnapshotRing(*bounds)


@pytest.mark.capability("issue 5 §5: similarity check of a snapshot, by signature")
def test_similarity():
    """Against the newest snapshot: the same direction 1, another one less, none unknown."""
    ring: Any = SnapshotRing()
    assert math.isnan(ring.similarity([1.0, 2.0]))
    ring.take(1, [], vectors=[[1.0, 2.0, 3.0], [0.5, 0.0, 1.0]])
    assert ring.similarity([[2.0, 4.0, 6.0], [0.5, 0.0, 1.0]]) == 1.0
    assert ring.similarity([[1.0, 2.0, 3.0], [-1.0, 0.5, 0.0]]) < 0.72
    assert math.isnan(ring.similarity([1.0, 2.0, 3.0]))


def test_the_action():
    """The text goes back and the ring stays; without a ring, or so far back, it says why it could not."""
    ring: Any = SnapshotRing(keep=2)
    for turn_id in range(3):
        ring.take(turn_id, [{"content": str(turn_id)}])
    now = [{"content": "now"}]
    done = rollback_snapshot(now, RollbackSnapshot(), Lent(snapshots=ring))
    assert (done.messages, done.is_done, done.details["turn_id"]) == ([{"content": "1"}], True, 1)
    assert ring.turn_ids == (1, 2)
    for host, turns in ((Lent(), 1), (Lent(snapshots=ring), 2)):
        done = rollback_snapshot(now, RollbackSnapshot(turns), host)
        assert (done.messages, done.is_done) == (now, False)
        assert set(done.details) == {"why"}


@pytest.mark.parametrize("wrong", [-1, True, 1.5, math.nan, "1", None])
def test_numbers_that_cannot_be(wrong):
    """A ring of NaN bytes would have no bound; a turn without a number no order."""
    ring = SnapshotRing()
    ring.take(1, [])
    asks = [
        lambda: SnapshotRing(keep=wrong),
        lambda: SnapshotRing(max_bytes=wrong),
        lambda: ring.take(wrong, []),
        lambda: ring.back(wrong),
        lambda: ring.forget_from(wrong),
    ]
    for ask in asks:
        with pytest.raises(UsageError, match="whole number"):
            ask()
    assert (ring.turn_ids, ring.last) == ((1,), 1)


@pytest.mark.parametrize(
    "more",
    [
        {"messages": [1]}, {"messages": None}, {"messages": ["text"]}, {"messages": [{1: 2}]}, {"state": "text"},
        {"state": None}, {"vectors": ["a"]}, {"vectors": [[1.0], [1.0, 2.0]]}, {"vectors": 1j},
    ],
)  # fmt: skip
def test_what_cannot_be_kept_changes_nothing(more):
    """A message that is no object, a state that is no bytes, vectors that are none: refused before anything is lost."""
    ring = SnapshotRing()
    ring.take(1, [{"role": "user"}], b"one")
    with pytest.raises(UsageError):
        ring.take(1, **{"messages": [], **more})
    assert ring.back(0) == Snapshot(1, [{"role": "user"}], b"one")
    ring.take(2, [{"role": "user"}], bytearray(b"two"))  # type: ignore[arg-type]
    assert ring.back(1) == Snapshot(1, [{"role": "user"}], b"one")
