"""The Decision as an object: immutable, comparable, copyable, not picklable; its parts."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from stabilitykit import Decision, Receipt
from stabilitykit.decision import ACTIONS
from tests.engines import Turn, breaker, play


@pytest.fixture
def decision():
    """Give the decision of a turn on which a session broke."""
    engine = breaker()
    play(engine, [90.0])
    return engine.evaluate(Turn(session_id="a", itl_ms=90.0))


@pytest.mark.capability("issue 2 §5: a Decision is immutable")
def test_immutable(decision):
    """No attribute can be set, added or removed, and neither can an item."""
    for name in ("state", "session_id", "turn_id", "faults", "matches", "anything"):
        with pytest.raises(AttributeError):
            setattr(decision, name, 1)
        with pytest.raises((AttributeError, TypeError)):
            delattr(decision, name)
    with pytest.raises(TypeError):
        decision[0] = 1
    with pytest.raises(AttributeError):
        decision.matches[0].rule = "other"
    assert isinstance(decision.faults, tuple)
    assert hash(decision) == hash(decision)


def test_later_turns_change_no_decision(decision):
    """What was decided stays decided: the words are the decision's own."""
    engine = breaker()
    play(engine, [90.0, 90.0])
    kept = engine.evaluate(Turn(session_id="a", itl_ms=95.0))
    before = json.dumps(kept.to_dict())
    play(engine, [10.0] * 20)
    engine.forget("a")
    assert json.dumps(kept.to_dict()) == before


def test_equality(decision):
    """Equal only where everything said is equal, by the same engine."""
    assert decision == copy.copy(decision)
    assert decision != breaker().evaluate(Turn(session_id="a", itl_ms=90.0))
    assert decision != ("a", 2)
    assert bool(decision)


def test_copies_are_the_decision_itself(decision):
    """An immutable thing needs no copy."""
    assert copy.copy(decision) is decision
    assert copy.deepcopy({"d": decision})["d"] is decision


def test_pickle_is_refused_clearly(decision):
    """It reads itself through its engine; the message says what to send instead."""
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="to_dict"):
            pickle.dumps(decision, protocol)
    assert json.loads(json.dumps(decision.to_dict()))["state"] == "broken"


def test_repr(decision):
    """Scope, identity, turn, state."""
    assert repr(decision) == "Decision(session='a', turn_id=2, state='broken')"
    assert isinstance(decision, Decision)


def test_receipt(decision):
    """A receipt names the decision and what was done."""
    assert decision.receipt(["throttle"]) == Receipt("a", 2, ("throttle",))
    assert decision.receipt(()).done == ()
    theirs = breaker().evaluate(Turn(session_id="a", tenant="one"))
    assert (theirs.tenant, theirs.receipt(()).tenant, theirs.apply([])[1].tenant) == ("one", "one", "one")


@pytest.mark.capability("issue 2 §5: a Decision in plain words: state, previous, matches, fired, actions and who asked")
def test_parts_in_plain_words(decision):
    """State, previous, matches, fired, actions with defaults filled in and who asked."""
    assert (decision.state, decision.previous, decision.fired) == ("broken", "healthy", ("slow",))
    assert [(m.rule, m.severity, m.scope, m.fired) for m in decision.matches] == [("slow", "critical", "session", True)]
    assert [(a.name, dict(a.params)) for a in decision.actions] == [("throttle", {"max_concurrency": 1})]
    assert set(ACTIONS) >= {a.name for a in decision.actions}
