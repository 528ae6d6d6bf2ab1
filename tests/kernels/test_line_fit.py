from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels.line_fit import line_fit, residual_spread
from stabilitykit.kernels.wide_int import read_wide, write_wide

EVERYTHING = (0.0, math.inf)
points = st.lists(st.tuples(st.integers(-(10**9), 0), st.integers(-(10**6), 10**6)), min_size=2, max_size=25).filter(
    lambda p: len({x for x, _ in p}) > 1
)


def memory(items):
    """Lay points out as a kernel has them."""
    xs, ys = zip(*items, strict=True)
    return np.array([*xs, *ys, *np.zeros(len(items))], float)


@given(points)
def test_is_numpys_polyfit(items):
    """Slope and height are numpy.polyfit's, and the residual is that of its line."""
    n = len(items)
    slope, height, residual, used, kept = line_fit(memory(items), 0, n, n, 0.0, 0.0, *EVERYTHING, math.inf)
    xs, ys = np.array(items, float).T
    wanted = np.polyfit(xs / 1e9, ys, 1)
    size = np.ptp(ys) + 1.0
    at = np.array([xs.min(), xs.max()])
    np.testing.assert_allclose(slope * at + height, np.polyval(wanted, at / 1e9), atol=1e-6 * size)
    assert residual == pytest.approx(math.sqrt(np.mean((ys - np.polyval(wanted, xs / 1e9)) ** 2)), abs=1e-4 * size)
    assert (used, kept) == (n, 0.0)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=30))
def test_median_is_numpys(values):
    """The median of unordered values, and the absolute deviation about a flat line."""
    n = len(values)
    f = np.array([*range(n), *values, *np.zeros(n)], float)
    middle, spread = residual_spread(f, 0, n, n, 0.0, 0.0, 2 * n)
    assert middle == pytest.approx(np.median(values), abs=1e-6)
    assert spread == pytest.approx(np.median(np.abs(values - np.median(values))), abs=1e-6)


def test_one_abscissa_has_no_slope():
    """Two readings at one time give no line."""
    assert math.isnan(line_fit(np.array([3.0, 3.0, 1.0, 2.0]), 0, 2, 2, 0.0, 0.0, *EVERYTHING, 1.0)[0])


def test_slope_is_kept_within_its_bound():
    """A steeper line is laid through the middle of the points with the greatest slope."""
    f = memory([(0, 0), (1, 10), (2, 20)])
    assert line_fit(f, 0, 3, 3, 0.0, 0.0, *EVERYTHING, 1.0)[:2] == (1.0, 9.0)
    assert line_fit(f, 0, 3, 3, 0.0, 0.0, *EVERYTHING, 1.0)[4] == 1.0


@given(st.integers(-(2**63), 2**63 - 1))
def test_wide_integers_come_back(value):
    """Every signed 64-bit integer survives its two words."""
    h = np.zeros(3, np.uint32)
    write_wide(h, 1, value)
    assert read_wide(h, 1) == value
    assert h[0] == 0
