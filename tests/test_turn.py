"""The Turn: every signal of the catalogue, cheap, missing by default."""

from __future__ import annotations

import copy
import math
import pickle
import struct
from typing import Any

import attrs
import pytest

from stabilitykit import Turn
from stabilitykit.signals import CATALOGUE
from stabilitykit.turn import MISSING, MISSING_BITS, is_missing

IDENTITY = {
    "session_id",
    "turn_id",
    "revision",
    "tenant",
    "replica",
    "device",
    "model",
    "timestamp_s",
    "replica_sample_s",
    "device_sample_s",
    "extra",
    "applied",
}


@pytest.mark.capability("issue 2 §2: the Turn has a field for every signal of the catalogue")
def test_fields():
    """Identity, the catalogue in its order, extra and receipt; nothing else."""
    names = [a.name for a in attrs.fields(Turn)]
    assert set(names) - IDENTITY == set(CATALOGUE)
    assert [n for n in names if n in CATALOGUE] == list(CATALOGUE)
    assert set(names) >= IDENTITY


def test_missing():
    """Not given is not NaN: a NaN that the host passes is a bad value."""
    turn = Turn(session_id="a")
    assert all(is_missing(getattr(turn, name)) for name in CATALOGUE)
    assert not any(map(is_missing, (math.nan, -math.nan, 0.0, "", False, [], 0)))
    assert struct.unpack("<Q", struct.pack("<d", MISSING))[0] == MISSING_BITS
    assert is_missing(None)


def test_only_by_name():
    """No positions, no unknown names, and an identity always."""
    loose: Any = Turn
    for places, names in ((("a",), {}), ((), {}), ((), {"session_id": "a", "itl_sm": 1.0})):
        with pytest.raises(TypeError):
            loose(*places, **names)


def test_copies_keep_what_is_missing():
    """A copied or pickled turn says the same: the mark of a missing value survives."""
    turn = Turn(session_id="a", itl_ms=3.0, embedding=[1.0], extra={"x": 1})
    for twin in (copy.copy(turn), copy.deepcopy(turn), pickle.loads(pickle.dumps(turn)), attrs.evolve(turn)):
        assert repr(twin) == repr(turn) == "Turn(session_id='a', itl_ms=3.0, embedding=..., extra=...)"
        assert is_missing(twin.ttft_ms)
        assert twin.embedding == [1.0]
