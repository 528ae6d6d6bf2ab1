from __future__ import annotations

import statistics

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels.median import median_add, median_size


@given(st.lists(st.sampled_from([0.0, -0.0, 1.0, 1.0, 2.5, 1e300, -1e300]) | st.floats(-1e6, 1e6)), st.integers(1, 12))
def test_is_the_median_of_the_last_values(values, window):
    """After every value the median is that of the last ones, ties and both zeros among them."""
    f = np.zeros(median_size(window))
    for n, value in enumerate(values, 1):
        assert median_add(f, window, value) == statistics.median(values[max(0, n - window) : n])
