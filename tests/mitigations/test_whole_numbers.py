from __future__ import annotations

import math

import numpy as np
import pytest

from stabilitykit.errors import UsageError
from stabilitykit.mitigations.whole_numbers import whole_number, whole_numbers


@pytest.mark.parametrize("kind", ["i1", "u2", ">i4", "u8", "i8"])
def test_every_integer_type(kind):
    """They are read as they are, in any byte order."""
    found = whole_numbers(np.array([0, 7], kind), "numbers")
    assert (str(found.dtype), found.tolist()) == ("int64", [0, 7])


@pytest.mark.parametrize("given", [[], (), np.zeros(0), np.zeros((2, 0))])
def test_nothing(given):
    """An empty list has no type of its own."""
    assert whole_numbers(given, "numbers").size == 0


@pytest.mark.parametrize("given", [[1.0], 0.5, [np.nan], [2**63], [2**70], ["1"], [None], [True], [[1], [1, 2]]])
def test_others(given):
    """Floats, even round ones, numbers beyond 64 bits and what is no number are refused by name."""
    with pytest.raises(UsageError, match="numbers are"):
        whole_numbers(given, "numbers")


@pytest.mark.parametrize(
    "wrong", [-1, True, np.True_, 1.0, math.nan, "1", None, 1 << 63, np.uint64(1 << 63), np.array([1])]
)
def test_no_whole_number(wrong):
    """Everything but a whole number from the least one on is refused, without a word of what it holds too long."""
    with pytest.raises(UsageError, match="a length is a whole number from 0 on"):
        whole_number(wrong, "a length")


def test_whole_numbers_of_any_type():
    """Python's and numpy's are one number, and come back as Python's."""
    found = [whole_number(given, "it") for given in (3, np.int8(3), np.uint64(3), np.array(3))]
    assert found == [3] * 4
    assert {type(one) for one in found} == {int}
