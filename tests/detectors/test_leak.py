from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.leak import LEAK
from stabilitykit.detectors.trace import trace
from tests.detectors.agreement import check_twins
from tests.naive.leak import LeakTwin

rows = st.lists(
    st.fixed_dictionaries(
        {
            "usage": st.one_of(st.none(), st.floats(0, 1), st.sampled_from([0.0, 1e200, 1e150])),
            "running": st.one_of(st.none(), st.integers(0, 50).map(float)),
        }
    ),
    max_size=40,
)


def verdict(usage, running):
    """Give the last verdict."""
    return trace(LEAK, [{"usage": u, "running": r} for u, r in zip(usage, running, strict=True)])[-1]["is_leak"]


@given(rows, st.sampled_from([2, 3, 10]))
def test_is_naive_twin(samples, window):
    """The kernel is its naive twin, extremes and unknown samples among them."""
    check_twins(LEAK, LeakTwin, samples, {"window": window})


def test_usage_up_requests_down():
    """Blocks that nobody uses are a leak."""
    assert verdict([0.3] * 5 + [0.5] * 5, [20.0] * 5 + [10.0] * 5) == 1.0


def test_load_moves_both():
    """More requests use more, fewer use less, a steady load neither."""
    assert verdict([0.3] * 5 + [0.5] * 5, [10.0] * 5 + [20.0] * 5) == 0.0
    assert verdict([0.5] * 5 + [0.3] * 5, [20.0] * 5 + [10.0] * 5) == 0.0
    assert verdict([0.5] * 10, [20.0] * 10) == 0.0


def test_edges_are_no_leak():
    """Exactly a tenth more, or a tenth fewer, is tolerated."""
    assert verdict([0.5] * 5 + [0.55] * 5, [20.0] * 5 + [10.0] * 5) == 0.0
    assert verdict([0.3] * 5 + [0.5] * 5, [20.0] * 5 + [18.0] * 5) == 0.0


def test_idle_replica_is_unknown():
    """Of no requests none can be fewer."""
    assert math.isnan(verdict([0.3] * 5 + [0.5] * 5, [0.0] * 10))


def test_half_a_window_is_unknown():
    """Nine of ten samples say nothing."""
    assert math.isnan(verdict([0.3] * 5 + [0.5] * 4, [20.0] * 5 + [10.0] * 4))
