from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import theilslopes

from stabilitykit.detectors.forecast import FORECAST
from stabilitykit.detectors.trace import trace
from tests.detectors.agreement import check_twins
from tests.naive.forecast import ForecastTwin

ratios = st.one_of(st.none(), st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, 16.0, 1e-300]))
times = st.one_of(st.none(), st.floats(0, 1e6))


@given(
    st.lists(st.fixed_dictionaries({"input": ratios, "time": times}), max_size=40),
    st.sampled_from([3, 4, 8, 16]),
    st.sampled_from([0.96, 1.0]),
)
def test_is_naive_twin(rows, window, full):
    """The kernel is its naive twin, cuts, missing times and times that run backward among them."""
    check_twins(FORECAST, ForecastTwin, rows, {"window": window, "full": full})


@given(st.lists(st.floats(0.8, 1.0), min_size=8, max_size=8))
def test_slope_is_scipys(values):
    """The slope is that of scipy.stats.theilslopes."""
    out = trace(FORECAST, values)[-1]
    assert out["slope_per_turn"] == pytest.approx(theilslopes(values)[0], rel=1e-9, abs=1e-12)


@given(st.floats(1e-3, 0.05), st.floats(0, 0.3))
def test_line_is_extrapolated_exactly(slope, start):
    """On a line the turns left are those that the line needs, in time as well."""
    rows = [{"input": start + slope * i, "time": 10.0 * i} for i in range(8)]
    out = trace(FORECAST, rows)[-1]
    left = (1 - start - 7 * slope) / slope
    assert out["turns_left"] == pytest.approx(left, rel=1e-6)
    assert out["seconds_left"] == pytest.approx(10 * left, rel=1e-6)


def test_two_outliers_do_not_move_it():
    """Two of eight values are anything, the forecast stays."""
    values = [0.10, 0.15, 0.20, 0.90, 0.68, 0.52, 0.40, 0.45]
    assert trace(FORECAST, values)[-1]["slope_per_turn"] == pytest.approx(0.05, abs=0.03)


def test_soon_at_three_turns():
    """It is soon when at most three turns are left, and stays so when it is full."""
    turns = trace(FORECAST, [0.1 * i for i in range(11)])
    assert [i for i, t in enumerate(turns) if t["is_soon"] == 1] == [7, 8, 9, 10]
    assert turns[-1]["turns_left"] == 0.0


def test_flat_is_never_soon():
    """What does not grow has no time left to tell, and is not soon."""
    out = trace(FORECAST, [0.93] * 20)[-1]
    assert math.isnan(out["turns_left"])
    assert out["is_soon"] == 0.0


def test_cut_begins_anew():
    """After half was dropped nothing is said until half a window was seen again."""
    turns = trace(FORECAST, [0.2 + 0.1 * i for i in range(8)] + [0.45, 0.5, 0.55, 0.6])
    assert [math.isnan(t["slope_per_turn"]) for t in turns[8:]] == [True, True, True, False]
    assert turns[-1]["slope_per_turn"] == pytest.approx(0.05)


def test_full_at_once_needs_no_slope():
    """A first value at the limit is soon without any trend."""
    assert trace(FORECAST, [1.0])[0]["is_soon"] == 1.0


def test_without_time_there_are_no_seconds():
    """Turns are told, seconds are unknown."""
    out = trace(FORECAST, [0.1 * i for i in range(8)])[-1]
    assert math.isnan(out["seconds_left"])
    assert out["turns_left"] == pytest.approx(3.0)
