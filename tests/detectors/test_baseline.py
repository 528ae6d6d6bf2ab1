from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.baseline import BASELINE
from stabilitykit.detectors.trace import trace
from tests.detectors.compare import check_agreement, latencies
from tests.naive.baseline import BaselineTwin


@pytest.mark.capability("issue 2 §4: `baseline` is its naive twin")
@given(latencies, st.sampled_from([0.05, 0.5, 1.0]), st.sampled_from([1, 2, 20]))
def test_is_naive_twin(rows, alpha, warmup):
    """The kernel is its naive twin to the bit, extremes and unknown turns among them."""
    check_agreement(BASELINE, BaselineTwin, rows, {"alpha": alpha, "warmup": warmup})


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=18))
def test_first_values_give_plain_mean_and_deviation(values):
    """Up to 1/alpha values the statistics are the unweighted ones of numpy."""
    out = trace(BASELINE, [*values, None], {"warmup": 1})[-1]
    assert out["mean"] == pytest.approx(np.mean(values), rel=1e-9, abs=1e-9)
    assert out["deviation"] == pytest.approx(np.std(values), rel=1e-9, abs=1e-6)


def test_value_is_not_in_its_own_baseline():
    """The turn that is compared has not been learned, the next one knows it."""
    turns = trace(BASELINE, [10.0, 30.0, 5.0], {"warmup": 1})
    assert [t["mean"] for t in turns[1:]] == [10.0, 20.0]
    assert turns[1]["ratio"] == 3.0


def test_cold_is_unknown():
    """Below the warm-up everything is unknown; unknown turns do not warm."""
    turns = trace(BASELINE, [1.0, None, 1.0, 1.0], {"warmup": 2})
    assert [math.isnan(t["mean"]) for t in turns] == [True, True, True, False]


def test_forgets():
    """A new level becomes the baseline."""
    turns = trace(BASELINE, [10.0] * 50 + [100.0] * 200)
    assert turns[-1]["mean"] == pytest.approx(100.0, rel=1e-3)


def test_zero_mean_has_no_ratio():
    """Nothing can be compared with a mean of zero."""
    out = trace(BASELINE, [0.0, 0.0, 5.0], {"warmup": 1})[-1]
    assert out["mean"] == 0.0
    assert math.isnan(out["ratio"])


@given(st.lists(st.floats(1e6, 1e6 + 1), min_size=3, max_size=60))
def test_deviation_is_real(values):
    """A large mean with a small spread never gives a negative variance."""
    assert all(t["deviation"] >= 0 for t in trace(BASELINE, values, {"warmup": 1})[1:])
