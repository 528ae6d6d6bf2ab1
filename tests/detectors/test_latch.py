from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.latch import LATCH
from stabilitykit.detectors.trace import trace
from tests.detectors.agreement import check_twins
from tests.naive.latch import LatchTwin

values = st.lists(st.one_of(st.none(), st.floats(0.0, 1.0), st.sampled_from([0.85, 0.92, 1e9, -1e9])), max_size=40)


@given(values, st.sampled_from([{}, {"above": 0.5, "below": 0.5}, {"above": 0.3, "below": 0.6}]))
def test_is_naive_twin(items, settings):
    """The kernel is its naive twin, limits, unknown values and limits the wrong way round among them."""
    check_twins(LATCH, LatchTwin, [{"input": value} for value in items], settings)


@given(st.lists(st.floats(0.85, 0.92), max_size=30))
def test_nothing_happens_between_the_limits(items):
    """Both limits belong to the band in which the bit keeps its value."""
    for first, is_on in ((0.95, 1.0), (0.1, 0.0)):
        assert {out["is_on"] for out in trace(LATCH, [first, *items])} == {is_on}
