"""Array inputs: copied, converted, read in place, refused; the pass sees exactly what was given."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from stabilitykit.compiled.arrays import Arrays
from stabilitykit.compiled.layout import ArrayInput
from stabilitykit.engine import Engine
from stabilitykit.signals import CATALOGUE
from stabilitykit.turn import Turn

INPUTS = (
    ArrayInput(CATALOGUE["embedding"], 3),
    ArrayInput(CATALOGUE["logprobs"], 0),
    ArrayInput(CATALOGUE["block_ids"], 0),
)


def seen(arrays: Arrays) -> list[list[float]]:
    """Read what lies at the addresses that the pass is given."""
    kinds: Any = (ctypes.c_float, ctypes.c_float, ctypes.c_int64)
    tables = (arrays.addresses[0], arrays.addresses[0], arrays.addresses[1])
    return [
        list((kind * int(n)).from_address(int(table[k])))
        for k, (kind, table, n) in enumerate(zip(kinds, tables, arrays.lengths, strict=True))
    ]


def test_the_pass_sees_what_was_given() -> None:
    """Lists, other dtypes, a second turn of another length, and an absent array."""
    arrays = Arrays(INPUTS)
    assert arrays.take([[1, 2, 3], np.array([-0.5, -1.0]), np.array([7, 8], np.int32)]) == []
    assert seen(arrays) == [[1, 2, 3], [-0.5, -1.0], [7, 8]]
    assert arrays.take([np.array([4, 5, 6], np.float32), np.array([-2.0], np.float32), None]) == []
    assert seen(arrays) == [[4, 5, 6], [-2.0], []]
    assert [b[: len(s)].tolist() for b, s in zip(arrays.bound, seen(arrays), strict=True)] == seen(arrays)


def test_a_second_array_of_the_same_kind_takes_the_short_way() -> None:
    """It is copied, so a host that writes into its array afterwards changes nothing."""
    arrays = Arrays(INPUTS)
    for shift in range(3):
        given = np.arange(3, dtype=np.float32) + shift
        assert arrays.take([given, None, None]) == []
        given[:] = -1.0
        assert seen(arrays)[0] == [shift, shift + 1, shift + 2]


def test_long_arrays_are_read_in_place() -> None:
    """Beyond the buffers nothing is copied; a short one afterwards is."""
    arrays = Arrays(INPUTS)
    long = np.linspace(-9, 0, 20_000).astype(np.float32)
    assert arrays.take([None, long, None]) == []
    assert np.shares_memory(arrays.bound[1], long)
    assert arrays.take([None, long[:5], None]) == []
    assert seen(arrays)[1] == long[:5].tolist()
    assert not np.shares_memory(arrays.bound[1], long)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("text", "type_mismatch"),
        ([object()], "type_mismatch"),
        ([1.0, 2.0], "dimension"),
        ([[1.0, 2.0, 3.0]], "dimension"),
        (np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False]), "invalid"),
    ],
)
def test_what_cannot_be_read_is_a_fault_and_absent(value: Any, kind: str) -> None:
    """A refused array leaves no trace of the one before."""
    arrays = Arrays(INPUTS)
    arrays.take([[1, 2, 3], None, None])
    assert [f.kind for f in arrays.take([value, None, None])] == [kind]
    assert seen(arrays)[0] == []
    assert arrays.take([[1, 2, 3], None, None]) == []
    assert seen(arrays)[0] == [1, 2, 3]


def test_floats_are_no_ids() -> None:
    """An id that is not whole would be another id."""
    assert [f.kind for f in Arrays(INPUTS).take([None, None, [1.5]])] == ["type_mismatch"]


def test_forgetting() -> None:
    """Afterwards every input is absent."""
    arrays = Arrays(INPUTS)
    assert not arrays.is_used
    arrays.take([[1, 2, 3], [-1.0], [4]])
    assert arrays.is_used
    arrays.forget()
    assert not arrays.is_used
    assert arrays.lengths.tolist() == [0, 0, 0]


class Liar(np.ndarray):
    """Says it is larger than it is."""

    @property
    def size(self):
        """Lie."""
        return 10**9


@pytest.mark.parametrize("value", [np.zeros(3, "i8").view(Liar), np.broadcast_to(np.int64(1), (10**13,))])
def test_size_is_never_taken_on_trust(value):
    """A subclass that lies is read as the plain array it is; one that is too long is a fault."""
    engine = Engine.load("chat")
    faults = engine.evaluate(Turn(session_id="a", block_ids=value)).faults
    assert [f.kind for f in faults] == ([] if isinstance(value, Liar) else ["dimension"])
