from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.excursion import EXCURSION
from stabilitykit.detectors.trace import Instance, trace
from tests.detectors.compare import check_agreement
from tests.naive.excursion import ExcursionTwin

values = st.lists(
    st.one_of(
        st.none(),
        st.sampled_from([0.0, -0.0, 1.0, 2.0, -2.0, 1e-300, 1e15, -1e149, 1e200, 1.7e308, -1.7e308]),
        st.floats(-100.0, 100.0),
        st.integers(-3, 3).map(float),
    ),
    max_size=80,
)
use = st.fixed_dictionaries(
    {
        "alpha": st.sampled_from([0.05, 1.0]),
        "margin": st.sampled_from([0.0, 0.02]),
        "jump": st.sampled_from([0.0, 0.2]),
        "warmup": st.sampled_from([1, 5, 33]),
    }
)


@pytest.mark.capability("issue 6: `excursion` is its naive twin")
@given(values, use)
def test_is_naive_twin(rows, settings):
    """The kernel is its naive twin to the bit, extremes, ties and unknown values among them."""
    check_agreement(EXCURSION, ExcursionTwin, rows, settings)


def test_is_naive_twin_past_the_thinning():
    """So it is when 31,000 values are reached, every second extreme is given up, and more come."""
    rng = np.random.default_rng(4)
    check_agreement(EXCURSION, ExcursionTwin, rng.lognormal(3, 1, 33_000).tolist())


@pytest.mark.parametrize("count", [150, 999, 1000, 4032, 22_695])
def test_bounds_are_numpys_quantiles(count):
    """Both ends are nearest ranks of p0.1 and p99.9, and so are those of a level that is the value itself."""
    past = np.random.default_rng(count).lognormal(3, 1, count)
    out = trace(EXCURSION, [*past.tolist(), None], {"alpha": 1.0})[-1]
    ranked = np.sort(past)
    assert out["value_high"] == ranked[-1 - count // 1000]
    assert out["value_low"] == ranked[count // 1000]
    assert (out["low"], out["high"]) == pytest.approx((out["value_low"], out["value_high"]))
    if count % 1000:
        assert out["value_high"] == np.quantile(past, 0.999, method="inverted_cdf")


def test_thinning_keeps_the_quantile():
    """After half the extremes were given up, the bounds are near those of all values."""
    past = np.random.default_rng(8).lognormal(3, 1, 31_000)
    detector = Instance(EXCURSION)
    for value in past.tolist():
        detector.update({"input": value})
    assert detector.memory[0][0] == 15_500
    told = detector.update({})
    assert told["value_high"] == pytest.approx(np.quantile(past, 0.999), rel=0.1)
    assert told["value_low"] == pytest.approx(np.quantile(past, 0.001), rel=0.1)


def test_both_ends_and_both_readings():
    """Up and down, by a far value or by a level that creeps; a value a little beyond is nothing."""
    past = [100.0 + i % 20 for i in range(210)]
    assert trace(EXCURSION, [*past, 124.0])[-1]["is_out"] == 1
    assert trace(EXCURSION, [*past, 95.0])[-1]["is_out"] == 1
    assert trace(EXCURSION, [*past, 120.0])[-1]["is_out"] == 0
    crept = trace(EXCURSION, [*past, *[117.0] * 20])
    assert [t["is_out"] for t in crept[210:213]] == [0, 0, 0]
    assert 1 in [t["is_out"] for t in crept[213:]]
    assert max(t["level"] for t in crept) < 119


def test_a_flat_past_is_left_by_any_change():
    """No span, no room; equality stays inside."""
    turns = trace(EXCURSION, [45.0] * 200 + [45.0, 45.1])
    assert [t["is_out"] for t in turns[-2:]] == [0, 1]


def test_cold_is_unknown():
    """Nothing is said before the warm-up; an unknown value has no verdict and teaches nothing."""
    turns = trace(EXCURSION, [1.0] * 150 + [None, 1.0])
    assert [math.isnan(t["is_out"]) for t in turns[149:]] == [True, True, False]
    assert math.isnan(turns[150]["level"])
    assert turns[150]["high"] == 1.0


def test_memory_is_a_kilobyte():
    """Four tails of 32 values and their lengths, a count and a level: whatever the series' length."""
    assert EXCURSION.layout({}).f8 * 8 == 1072
