from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels.cosine import dot

floats = st.floats(-1e3, 1e3, width=32)


@given(st.lists(st.tuples(floats, floats), max_size=40), st.integers(0, 3))
def test_is_exact_sum(pairs, at):
    """Every length, block or remainder, and every offset gives the exact sum within rounding."""
    u = np.array([9.0] * at + [a for a, _ in pairs], np.float32)
    v = np.array([b for _, b in pairs], np.float32)
    terms = [float(a) * float(b) for a, b in pairs]
    want = math.fsum(terms)
    assert dot(u, at, v, 0, len(pairs)) == pytest.approx(want, abs=1e-14 * math.fsum(map(abs, terms)) + 1e-300)


def test_products_are_float64():
    """A product that overflows float32 does not overflow."""
    u = np.full(9, 1e30, np.float32)
    assert dot(u, 0, u, 0, 9) == pytest.approx(9e60, rel=1e-6)


def test_nan_shows():
    """A NaN anywhere is a NaN."""
    u = np.array([1.0, math.nan], np.float32)
    assert math.isnan(dot(u, 0, u, 0, 2))
