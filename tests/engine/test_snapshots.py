"""Text and engine state go back together, exactly."""

from __future__ import annotations

import copy
import functools
import tempfile
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.stateful
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from stabilitykit import Engine, UsageError
from stabilitykit.engine.snapshots import SessionSnapshots
from stabilitykit.errors import BlobError
from stabilitykit.mitigations.snapshots import SnapshotRing
from tests.engines import VECTORS, Turn, vector_engine, words

KEEP = 4
NAMES = st.sampled_from(["a", "b", "c"])
PACK = """\
stabilitykit: 1
pack: going-back
extends: [base]
rules:
  - rule: far-off
    desc: the last answer was a bad one
    when: itl_ms > 500 ms
    do: [{rollback_snapshot: {turns: 1}}, {inject_state_tokens: {format: readable}}]
    reason: "{{ itl_ms }} ms"
    tags: [sandbox]
"""


@functools.lru_cache(maxsize=1)
def program():
    """Compile the pack with vectors once."""
    with tempfile.TemporaryDirectory() as folder:
        return vector_engine(Path(folder), VECTORS)._live.program


def new_engine() -> Any:
    """Give a fresh engine that uses vectors, extra signals and every scope."""
    return Engine(program(), ttl_s=None, snapshots=KEEP, log_key=b"k")


@st.composite
def turns(draw):
    """Give the fields of a turn: slow or fast, with and without vectors, of two models, bad numbers among them."""
    fields: dict[str, Any] = {"itl_ms": draw(st.sampled_from([30.0, 40.0, 300.0, float("nan"), -1.0]))}
    fields["model"] = draw(st.sampled_from([None, "m", "n"]))
    fields["finish_reason"] = draw(st.sampled_from([None, "stop", "abort"]))
    if draw(st.booleans()):
        fields["embedding"] = draw(st.lists(st.sampled_from([-1.0, 0.25, 2.0]), min_size=4, max_size=4))
    if draw(st.booleans()):
        fields["top_token_ids"], fields["top_logprobs"] = [1, 2], draw(st.sampled_from([[-0.1, -3.0], [-0.6, -0.9]]))
    if draw(st.booleans()):
        fields["extra"] = {"host_score": draw(st.sampled_from([0.2, 0.9]))}
    return fields


class Session:
    """What a naive host would keep: deep copies of everything."""

    def __init__(self) -> None:
        self.turns: list[Any] = []
        self.chat: list[Any] = []
        self.kept: list[tuple[int, list[Any], int]] = []
        self.last = -1

    def back(self, turns):
        """Find the latest copy that is old enough."""
        return next((one for one in reversed(self.kept) if one[0] <= self.last - turns), None)


class Rollbacks(RuleBasedStateMachine):
    """Several sessions of one engine, with rings, and a host that copies and replays."""

    done = 0
    """Rollbacks of one turn or more, in all histories: random steps that never go back would show nothing."""

    @initialize()
    def start(self):
        """Begin with nothing."""
        self.engine = new_engine()
        self.sessions = {name: Session() for name in "abc"}
        self.rings = {name: SessionSnapshots(self.engine, name, ring=SnapshotRing(KEEP)) for name in "abc"}

    @rule(name=NAMES, steps=st.lists(st.tuples(turns(), st.integers(0, 5), st.booleans()), min_size=1, max_size=4))
    def evaluate(self, name, steps):
        """Take turns; the host adds to the conversation, edits it or drops from it, and may take a snapshot of each."""
        session = self.sessions[name]
        for fields, edit, is_taken in steps:
            turn = Turn(session_id=name, **fields)
            self.engine.evaluate(turn)
            session.turns.append(turn)
            if edit == 0 and session.chat:
                session.chat[-1]["content"] += "!"
            elif edit == 1:
                del session.chat[1:3]
            session.chat.append({"role": "user", "content": f"turn {len(session.turns)}"})
            if is_taken:
                self.take(name)

    @rule(name=NAMES)
    def take(self, name):
        """Take a snapshot; of a turn taken before the later one counts."""
        session = self.sessions[name]
        if not session.turns:
            with pytest.raises(UsageError):
                self.rings[name].take(session.chat)
            return
        assert self.rings[name].take(session.chat)
        session.last = len(session.turns)
        session.kept = [one for one in session.kept if one[0] < session.last]
        session.kept.append((session.last, copy.deepcopy(session.chat), len(session.turns)))
        session.kept = session.kept[-KEEP:]

    @rule(name=NAMES, turns=st.sampled_from([1, 2, 0, 4]))
    def roll_back(self, name, turns):
        """Go back: the text is the copy, the engine what a new one is after the turns that are left."""
        session = self.sessions[name]
        found = session.back(turns)
        if found is None:
            with pytest.raises(UsageError, match="kept"):
                self.rings[name].rollback(turns)
            return
        session.chat = self.rings[name].rollback(turns)
        Rollbacks.done += turns > 0
        assert session.chat == found[1]
        session.last, session.turns = found[0], session.turns[: found[2]]
        session.kept = [one for one in session.kept if one[0] <= found[0]]
        self.compare(name)

    def teardown(self):
        """Compare every session at the end."""
        for name in self.sessions:
            self.compare(name)

    def compare(self, name):
        """Compare the session's bytes, and a further turn, with those of a new engine."""
        session = self.sessions[name]
        if session.turns:
            fresh = new_engine()
            for turn in session.turns:
                fresh.evaluate(turn)
            assert self.engine.export(name) == fresh.export(name)
            further = Turn(session_id=name, itl_ms=300.0, embedding=[1.0, 0.0, 0.0, 2.0])
            assert words(self.engine.peek(further)) == words(fresh.peek(further))


@pytest.mark.slow
@pytest.mark.capability("issue 5 §5: text and engine state roll back together, exactly, under random interleavings")
def test_random_interleavings():
    """A hundred histories of forty steps over three sessions, against deep copies and a new engine each time."""
    settings = hypothesis.settings(stateful_step_count=40, max_examples=100)
    Rollbacks.done = 0
    hypothesis.stateful.run_state_machine_as_test(Rollbacks, settings=settings)
    assert Rollbacks.done > 40


def test_fork_at_turn_after_a_rollback():
    """The turns before it can still be branched from; those that never were cannot."""
    engine = new_engine()
    kept = SessionSnapshots(engine, "a")
    for itl in (30.0, 40.0, 300.0):
        engine.evaluate(Turn(session_id="a", itl_ms=itl))
        kept.take([])
    kept.rollback(1)
    engine.fork("a", "b", at_turn=1)
    fresh = new_engine()
    fresh.evaluate(Turn(session_id="b", itl_ms=30.0))
    assert engine.export("b") == fresh.export("b")
    with pytest.raises(UsageError, match="not kept"):
        engine.fork("a", "c", at_turn=3)


def test_back_and_back_again():
    """Each rollback counts from where the last one went, in text and engine."""
    engine = new_engine()
    kept = SessionSnapshots(engine, "a")
    for k, itl in enumerate((30.0, 40.0, 35.0, 300.0)):
        engine.evaluate(Turn(session_id="a", itl_ms=itl))
        kept.take([{"content": str(k)}])
    assert kept.rollback(1) == [{"content": "2"}]
    assert kept.rollback(1) == [{"content": "1"}]
    assert kept.ring.turn_ids == (1, 2)
    assert engine.evaluate(Turn(session_id="a", itl_ms=30.0)).turn_id == 3


def test_a_session_that_left(tmp_path):
    """One that the store dropped comes back; one of a pack that was reloaded does not, and nothing changes."""
    engine = vector_engine(tmp_path)
    kept = SessionSnapshots(engine, "a", tenant="t")
    engine.evaluate(Turn(session_id="a", tenant="t", itl_ms=30.0))
    kept.take([{"content": "one"}])
    blob = engine.export("a", tenant="t")
    assert engine.forget("a", tenant="t")
    assert kept.rollback(0) == [{"content": "one"}]
    assert engine.export("a", tenant="t") == blob
    (tmp_path / "vectors.yaml").write_text(VECTORS.replace("window: 3", "window: 4"), encoding="utf-8")
    engine.reload(str(tmp_path / "vectors.yaml"))
    with pytest.raises(BlobError):
        kept.rollback(0)
    assert kept.ring.turn_ids == (1,)


def going_back(folder):
    """Give an engine whose rule asks for a rollback, after two good turns and a bad one, with their snapshots."""
    path = folder / "going-back.yaml"
    path.write_text(PACK, encoding="utf-8")
    engine = Engine.load(str(path))
    kept = SessionSnapshots(engine, "a")
    chat: list[Any] = []
    decision: Any = None
    for itl in (30.0, 40.0, 900.0):
        chat.append({"role": "user", "content": f"{itl:.0f}"})
        decision = engine.evaluate(Turn(session_id="a", itl_ms=itl))
        kept.take(chat)
    return engine, kept, chat, decision


@pytest.mark.capability("issue 5 §5: rollback_snapshot through apply: of the text alone, or with the engine")
def test_apply(tmp_path):
    """The text goes back and takes the other actions; with the session's own ring the engine goes back as well."""
    engine, kept, chat, decision = going_back(tmp_path)
    text, receipt = decision.apply(chat, snapshots=kept.ring, values={"a": "1"})
    assert [m["content"] for m in text] == ["[TURN_START]30[TURN_END]", "[TURN_START]40[STATE:a=1][TURN_END]"]
    assert receipt.done == ("rollback_snapshot", "inject_state_tokens")
    assert receipt.details["rollback_snapshot"]["turn_id"] == 2
    assert engine.evaluate(Turn(session_id="a", turn_id=3, itl_ms=900.0)) is decision

    again, nothing = kept.apply(decision, chat, values={"a": "1"})
    assert (again, nothing) == (text, None)
    other = Engine.load(str(tmp_path / "going-back.yaml"))
    for itl in (30.0, 40.0):
        other.evaluate(Turn(session_id="a", itl_ms=itl))
    assert engine.export("a") == other.export("a")
    assert not engine.evaluate(Turn(session_id="a", itl_ms=30.0, applied=nothing)).faults


def test_apply_without_a_way_back(tmp_path):
    """Another pack since, or another action: as `decision.apply` does it."""
    engine, kept, chat, decision = going_back(tmp_path)
    (tmp_path / "going-back.yaml").write_text(PACK.replace("500 ms", "600 ms"), encoding="utf-8")
    engine.reload(str(tmp_path / "going-back.yaml"))
    text, receipt = kept.apply(decision, chat)
    assert (text, receipt.done) == (chat, ())
    good = engine.evaluate(Turn(session_id="b", itl_ms=30.0))
    assert kept.apply(good, chat) == (chat, good.receipt(()))
