from __future__ import annotations

import statistics

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels.ordered import insert_ordered, ordered_median


@given(
    st.lists(st.sampled_from([0.0, -0.0, 1.0, 2.5, 1e300, -1e300]) | st.floats(-1e6, 1e6), min_size=1),
    st.integers(0, 3),
)
def test_is_sorted_and_its_middle(values, at):
    """One by one into place, equals in the order in which they came; nothing outside is touched."""
    f = np.full(at + len(values) + 1, 7.0)
    for n, value in enumerate(values):
        assert insert_ordered(f, at, n, value) == n + 1
        assert ordered_median(f, at, n + 1) == statistics.median(values[: n + 1])
    assert f[at:-1].tobytes() == np.array(sorted(values)).tobytes()
    assert [*f[:at], f[-1]] == [7.0] * (at + 1)
