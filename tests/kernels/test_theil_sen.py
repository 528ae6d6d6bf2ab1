from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import theilslopes

from stabilitykit.kernels.theil_sen import theil_sen, theil_sen_size


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=16), st.integers(0, 15))
def test_is_scipys_slope(values, turned):
    """The slope is scipy's, wherever in the ring the oldest value stands."""
    n = len(values)
    oldest = turned % n
    f = np.zeros(n + theil_sen_size(n))
    f[:n] = np.roll(values, oldest)
    assert theil_sen(f, oldest, n, n, n) == pytest.approx(theilslopes(values)[0], rel=1e-9, abs=1e-9)


def test_part_of_a_ring():
    """Before the ring is full only what is in it counts."""
    f = np.zeros(8 + theil_sen_size(8))
    f[:3] = 1.0, 3.0, 5.0
    assert theil_sen(f, 0, 3, 8, 8) == 2.0
