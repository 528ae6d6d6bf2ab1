"""Records from outside: every mistake located, nothing lost on the way there and back."""

from __future__ import annotations

import json
import math

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit import Receipt, RecordError, Turn, TurnRecord
from stabilitykit.signals import CATALOGUE
from stabilitykit.turn import is_missing

TEXT = st.text(max_size=12)
FLOATS = st.floats() | st.integers(-(2**53), 2**53)
KINDS = {
    "number": FLOATS,
    "count": FLOATS,
    "bool": st.booleans() | st.sampled_from([0.0, 1.0]),
    "enum": TEXT,
    "array": st.lists(st.integers(-(2**40), 2**40), max_size=4),
}
FIELDS = {
    **{s.name: KINDS[s.kind] for s in CATALOGUE.values()},
    "turn_id": st.integers(0, 2**63 - 1),
    "revision": st.integers(1, 2**40),
    "tenant": TEXT.filter(bool),
    "replica": TEXT,
    "device": TEXT,
    "model": TEXT,
    "timestamp_s": FLOATS,
    "replica_sample_s": FLOATS,
    "device_sample_s": FLOATS,
    "extra": st.dictionaries(TEXT, FLOATS | TEXT, max_size=3),
    "applied": st.builds(
        Receipt, TEXT, st.integers(0, 2**40), st.lists(TEXT, max_size=3).map(tuple), tenant=st.just("") | TEXT
    ),
}


def same(a, b):
    """Compare values, NaN with NaN."""
    if isinstance(a, float) and isinstance(b, float | int) and math.isnan(a):
        return math.isnan(b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return bool(a == b)


@pytest.mark.capability("issue 2 §2: TurnRecord: a Turn to JSON and back loses nothing")
@given(
    given=st.lists(st.sampled_from(sorted(FIELDS)), max_size=8, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({n: FIELDS[n] for n in names})
    ),
    session=TEXT,
)
def test_there_and_back(given, session):
    """Any turn of any values, NaN and infinities included."""
    turn = Turn(session_id=session, **given)
    again = TurnRecord.parse(json.dumps(TurnRecord.dump(turn)))
    for field in attrs.fields(Turn):
        a, b = getattr(turn, field.name), getattr(again, field.name)
        assert is_missing(a) == is_missing(b)
        assert is_missing(a) or same(a, b), field.name
    assert TurnRecord.dump(again) == TurnRecord.dump(again)


def test_whose_receipt():
    """A receipt that does not say is its turn's tenant's; a record names the tenant where it is another."""
    receipt = {"session_id": "a", "turn_id": 1, "done": []}
    turn = TurnRecord.parse({"session_id": "a", "tenant": "one", "applied": receipt})
    assert turn.applied == Receipt("a", 1, (), tenant="one")
    assert TurnRecord.dump(turn)["applied"] == receipt
    turn = TurnRecord.parse({"session_id": "a", "tenant": "one", "applied": {**receipt, "tenant": ""}})
    assert turn.applied == Receipt("a", 1, ())
    assert TurnRecord.dump(turn)["applied"] == {**receipt, "tenant": ""}


def test_arrays_of_numpy():
    """NumPy arrays and numbers become lists and numbers."""
    turn = Turn(
        session_id="a", embedding=np.arange(3, dtype=np.float32), itl_ms=np.float64(3.5), block_ids=np.arange(2)
    )
    assert TurnRecord.dump(turn) == {
        "session_id": "a",
        "itl_ms": 3.5,
        "embedding": [0.0, 1.0, 2.0],
        "block_ids": [0, 1],
    }


@pytest.mark.capability("issue 2 §2: TurnRecord.parse: every mistake of a record is located")
@pytest.mark.parametrize(
    ("record", "message"),
    [
        ('{"session_id": "a", "itl_sm": 1}', "itl_sm: no such field; did you mean itl_ms?"),
        ('{"session_id": "a", "zzzzzz": 1}', "zzzzzz: no such field"),
        ("{}", "session_id: Field required"),
        ('{"session_id": 5}', "session_id: Input should be a valid string"),
        ('{"session_id": "a", "itl_ms": "38"}', "itl_ms: Input should be a valid number"),
        ('{"session_id": "a", "itl_ms": true}', "itl_ms: Input should be a valid number"),
        ('{"session_id": "a", "turn_id": true}', "turn_id: Input should be a valid integer"),
        ('{"session_id": "a", "turn_id": 1.5}', "turn_id: Input should be a valid integer"),
        ('{"session_id": "a", "embedding": [1.0, "canary"]}', "embedding.1: Input should be a valid number"),
        ('{"session_id": "a", "top_token_ids": [1.5]}', "top_token_ids.0: Input should be a valid integer"),
        ('{"session_id": "a", "finish_reason": 3}', "finish_reason: Input should be a valid string"),
        ('{"session_id": "a", "applied": {"session_id": "a", "turn_id": 1}}', "applied.done: Field required"),
        (
            '{"session_id": "a", "applied": {"session_id": "a", "turn_id": 1, "done": [1]}}',
            "applied.done.0: Input should be",
        ),
        ('{"session_id": "a"', "line 1, column 19: Expecting ',' delimiter"),
        ('{\n"session_id": oops}', "line 2, column 15: Expecting value"),
        ("[1]", "a turn is an object, not list"),
        ("7", "a turn is an object, not int"),
        ("", "line 1, column 1"),
        (b"\xff{", "not JSON: UnicodeDecodeError"),
        ("[" * 100_000, "not JSON: RecursionError"),
        ('{"session_id": "a", "turn_id": ' + "9" * 5_000 + "}", "not JSON: ValueError"),
        ({1: 2}, "1: Keys should be strings"),
        ({"session_id": "a", "itl_ms": object()}, "itl_ms: Input should be a valid number"),
        ('{"session_id": "a", "is_history_truncated": "canary"}', "is_history_truncated: Input should be"),
        (
            '{"session_id": "a", "itl_ms": "canary", "turn_id": "canary"}',
            "turn_id: Input should be a valid integer; itl_ms: Input",
        ),
    ],
)
def test_mistakes(record, message):
    """Path and sentence of each mistake; the values themselves are never repeated."""
    with pytest.raises(RecordError) as error:
        TurnRecord.parse(record)
    assert message in str(error.value)
    assert "canary" not in str(error.value)
    assert ".bool" not in str(error.value)


def test_what_is_no_mistake():
    """Null is missing, bad values are for the engine to judge, bytes and mappings will do."""
    assert is_missing(TurnRecord.parse('{"session_id": "a", "itl_ms": null}').itl_ms)
    assert TurnRecord.parse(b'{"session_id": "a", "itl_ms": -1e999}').itl_ms == -math.inf
    assert TurnRecord.parse({"session_id": "a", "is_history_truncated": 1}).is_history_truncated == 1
    assert TurnRecord.parse('{"session_id": "a", "error": "no-such-word"}').error == "no-such-word"
    assert TurnRecord.parse('{"session_id": "a", "embedding": [1, null]}').embedding == [1.0, None]
