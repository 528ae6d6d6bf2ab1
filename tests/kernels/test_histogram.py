from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels.histogram import (
    first_bin,
    histogram_add,
    histogram_bin,
    histogram_halve,
    histogram_size,
    histogram_value,
)

SHAPES = [(16, 4, np.uint16), (24, 5, np.uint32)]
LOWEST = 0.25


def filled(values, octaves, bits, dtype):
    """Give a histogram of values."""
    h = np.zeros(histogram_size(octaves, bits), dtype)
    for value in values:
        histogram_add(h, histogram_bin(value, int(first_bin(LOWEST, bits)), octaves, bits), octaves, bits)
    return h


def sums(h, octaves, bits):
    """Give the sums of the octaves, computed afresh."""
    return h[: octaves << bits].reshape(octaves, -1).sum(axis=1)


@pytest.mark.parametrize(("octaves", "bits", "dtype"), SHAPES)
@given(values=st.lists(st.floats(LOWEST, 16000.0), min_size=1, max_size=60), data=st.data())
def test_every_rank_is_within_the_guarantee(octaves, bits, dtype, values, data):
    """The value of any rank is off by at most 1/(2s+1) of it."""
    h = filled(values, octaves, bits, dtype)
    rank = data.draw(st.integers(1, len(values)))
    got = histogram_value(h, rank, LOWEST * 2.0 ** (octaves - 1), octaves, bits)
    assert got == pytest.approx(sorted(values)[-rank], rel=1 / (2 * 2**bits) * 1.0000001)


@pytest.mark.parametrize(("octaves", "bits", "dtype"), SHAPES)
@given(values=st.lists(st.floats(0.0, 1e6), max_size=80))
def test_halving_halves_every_rank(octaves, bits, dtype, values):
    """From the top down to any bin, half the count is left, rounded down; the sums of octaves agree."""
    h = filled(values, octaves, bits, dtype)
    before = h[: octaves << bits][::-1].cumsum()
    assert histogram_halve(h, octaves, bits) == len(values) // 2
    assert (h[: octaves << bits][::-1].cumsum() == before // 2).all()
    assert (h[octaves << bits :] == sums(h, octaves, bits)).all()


@pytest.mark.parametrize(("octaves", "bits", "dtype"), SHAPES)
def test_ends_take_what_lies_outside(octaves, bits, dtype):
    """Zero, negative, tiny and huge values are counted in the bin at their end of the range."""
    base = int(first_bin(LOWEST, bits))
    bins = [histogram_bin(v, base, octaves, bits) for v in (0.0, -5.0, 1e-300, LOWEST, 1e300)]
    assert bins == [0, 0, 0, 0, (octaves << bits) - 1]


def test_uint16_counts_reach_their_limit():
    """Counts up to 2^16 - 1 are read as they are."""
    h = filled([1.0, 2.0], 16, 4, np.uint16)
    h *= 32767
    assert histogram_value(h, 32767, LOWEST * 2.0**15, 16, 4) == pytest.approx(2.0, rel=0.04)
    assert histogram_value(h, 32768, LOWEST * 2.0**15, 16, 4) == pytest.approx(1.0, rel=0.04)
