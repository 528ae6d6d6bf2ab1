from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels.percentile import percentile, sorted_percentile

values = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40)


@given(values, st.sampled_from([0.0, 0.5, 0.85, 0.9, 0.95, 1.0]))
def test_is_numpys(items, share):
    """The percentile of ordered values is numpy's linear one, to the bit."""
    assert sorted_percentile(np.sort(items), len(items), share) == np.percentile(items, 100 * share)


@given(st.lists(st.one_of(st.just(np.nan), st.floats(-1e9, 1e9)), min_size=1, max_size=20))
def test_unknown_values_are_left_out(items):
    """Unordered values with unknown ones among them; nothing known is unknown."""
    f = np.array([*items, *np.zeros(len(items))])
    got = percentile(f, 0, len(items), 0.9, len(items))
    known = [v for v in items if v == v]
    assert got == np.percentile(known, 90) if known else np.isnan(got)
    np.testing.assert_array_equal(f[: len(items)], items)
