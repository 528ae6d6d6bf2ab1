"""From a Turn to numbers: the written function and the patient one agree, or the patient one takes over."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.compiled.layout import ScalarInput
from stabilitykit.compiled.packing import HEAD, MISMATCH, gather, make_array_reader, make_packer
from stabilitykit.signals import CATALOGUE, SignalSpec
from stabilitykit.turn import MISSING, Turn

DECLARED = SignalSpec("queue_len", "count", "session", "for tests", "count", 0, 100)
SCALARS = (
    *(ScalarInput(CATALOGUE[n], False, True) for n in ("itl_ms", "is_history_truncated", "finish_reason")),
    ScalarInput(DECLARED, True, True),
)
HEADER = (11, 12, 13, 14, 15, 16, 17, 18)


def packed(turn: Turn) -> list[bytes]:
    """Pack a turn with the written function; gives the bits of head and inputs."""
    form = struct.Struct(f"=6Q3q{len(SCALARS)}d")
    buffer = bytearray(form.size)
    make_packer(SCALARS, form.pack_into, buffer)(turn, *HEADER)
    return [bytes(buffer[k : k + 8]) for k in range(0, len(buffer), 8)]


def test_head_and_inputs_stand_in_order() -> None:
    """Addresses, flags, skip, revision, then one double an input."""
    words = packed(Turn(session_id="a", revision=3, itl_ms=1.5))
    assert [int.from_bytes(w, "little") for w in words[:HEAD]] == [*HEADER, 3]
    assert words[HEAD] == struct.pack("<d", 1.5)
    assert set(words[HEAD + 1 :]) == {struct.pack("<d", MISSING)}


@given(
    st.floats() | st.integers(-5, 5) | st.booleans(),
    st.booleans() | st.floats(0, 1),
    st.sampled_from([None, "stop", "length"]),
    st.none() | st.floats(0, 9),
)
def test_both_ways_give_the_same_bits(itl, truncated, reason, extra):
    """Whatever the written function accepts, ``gather`` reads in the same way."""
    more = None if extra is None else {"queue_len": extra}
    turn = Turn(session_id="a", itl_ms=itl, is_history_truncated=truncated, finish_reason=reason, extra=more)
    values, faults = gather(turn, SCALARS, {})
    assert faults == []
    assert packed(turn)[HEAD:] == [struct.pack("<d", v) for v in values]


@pytest.mark.parametrize("field", [{"itl_ms": None}, {"itl_ms": "12"}, {"finish_reason": "bored"}, {"itl_ms": 10**400}])
def test_a_strange_value_is_left_to_the_patient_way(field: dict[str, Any]) -> None:
    """The written function raises and writes nothing that counts."""
    with pytest.raises((TypeError, struct.error, OverflowError)):
        packed(Turn(session_id="a", **field))


@pytest.mark.parametrize(
    ("value", "bits", "kinds"),
    [
        (None, MISSING, []),
        ("12", MISMATCH, ["type_mismatch"]),
        (b"1", MISMATCH, ["type_mismatch"]),
        (1j, MISMATCH, ["type_mismatch"]),
        (np.float32(2.5), 2.5, []),
    ],
)
def test_reading_one_value(value: Any, bits: float, kinds: list[str]) -> None:
    """None is missing, what is no number is a fault."""
    values, faults = gather(Turn(session_id="a", itl_ms=value), SCALARS[:1], {})
    assert struct.pack("<d", values[0]) == struct.pack("<d", bits)
    assert [f.kind for f in faults] == kinds


def test_functions_fill_what_the_turn_does_not_bring() -> None:
    """A function that raises is a fault, not an exception."""
    turn = Turn(session_id="a")
    scalars = SCALARS[3:]
    assert gather(turn, scalars, {"queue_len": lambda t: 7}) == ([7.0], [])
    values, faults = gather(turn, scalars, {"queue_len": lambda t: 1 / 0})
    assert struct.pack("<d", values[0]) == struct.pack("<d", MISSING)
    assert [(f.kind, f.detail) for f in faults] == [("signal_function", "ZeroDivisionError")]


def test_reading_arrays() -> None:
    """All fields of the turn in order, or nothing when none is there."""
    read = make_array_reader(["embedding", "block_ids"])
    assert read(Turn(session_id="a")) == ()
    assert read(Turn(session_id="a", block_ids=[1])) == (None, [1])
    assert make_array_reader([])(Turn(session_id="a")) == ()
