from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels.ewma import COUNT, LIMIT, MEAN, VARIANCE, ewma_update


@given(st.lists(st.floats(-LIMIT, LIMIT), max_size=50), st.floats(1e-6, 1.0))
def test_variance_is_finite_and_never_negative(values, alpha):
    """Neither cancellation nor the greatest values that are let in spoil the statistics."""
    f = np.zeros(3)
    for value in values:
        ewma_update(f, value, alpha)
        assert np.isfinite(f).all()
        assert f[VARIANCE] >= 0.0


def test_weights_are_exponential_once_warm():
    """From 1/alpha values on, the mean is the textbook recursion."""
    f = np.array([100.0, 10.0, 4.0])
    ewma_update(f, 20.0, 0.1)
    assert f[COUNT] == 101
    assert f[MEAN] == pytest.approx(11.0)
    assert f[VARIANCE] == pytest.approx(0.9 * (4.0 + 0.1 * 100.0))
