from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.kernel_durations import KERNEL_DURATIONS
from stabilitykit.detectors.trace import trace
from tests.detectors.agreement import check_twins
from tests.naive.kernel_durations import KernelDurationsTwin

durations = st.lists(
    st.one_of(st.none(), st.floats(0.0, 50.0), st.sampled_from([0.0, 10.0, 10.0, 1e12, 1e-300])), max_size=60
)


@given(durations, st.sampled_from([1, 7, 20, 200]), st.sampled_from([1, 5, 20]))
def test_is_naive_twin(values, window, least):
    """The kernel is its naive twin, ties, extremes and unknown kernels among them."""
    rows = [{"input": value} for value in values]
    check_twins(KERNEL_DURATIONS, KernelDurationsTwin, rows, {"window": window, "least": least})


@given(st.lists(st.floats(0.0, 1e6), min_size=20, max_size=80))
def test_is_numpys(values):
    """p95 is numpy.percentile's to the bit, the mean and the tail are numpy's."""
    out = trace(KERNEL_DURATIONS, values, {"window": 50})[-1]
    last = np.array(values[-50:])
    assert out["p95_us"] == np.percentile(last, 95)
    assert out["mean_us"] == pytest.approx(last.mean(), rel=1e-12)
    assert out["tail_ratio"] == np.mean(last > 10.0)


@pytest.mark.capability("issue 3 §1: kernel durations in a window: mean, p95 and tail share above 10 us")
@pytest.mark.parametrize(("mean", "p95", "tail"), [(3.2, 7.8, 0.021), (1.9, 4.3, 0.003)], ids=["gemm", "reduction"])
def test_rows_of_the_source(mean, p95, tail):
    """Log-normal kernels with a row's mean and p95 (B2.2) keep them, and less than 5 % are above 10 us, as it says."""
    sigma = min(np.roots([0.5, -1.6448536, math.log(p95 / mean)]).real)
    values = np.random.default_rng(3).lognormal(math.log(mean) - sigma**2 / 2, sigma, 4000)
    turns = trace(KERNEL_DURATIONS, values, {"window": 512})[512::512]
    assert np.mean([t["mean_us"] for t in turns]) == pytest.approx(mean, rel=0.03)
    assert np.mean([t["p95_us"] for t in turns]) == pytest.approx(p95, rel=0.05)
    assert np.mean([t["tail_ratio"] for t in turns]) == pytest.approx(tail, abs=0.012)


def test_few_are_unknown():
    """Below 20 kernels nothing is said but their number; exactly 10 us is not slow."""
    turns = trace(KERNEL_DURATIONS, [10.0] * 19 + [None, 10.1])
    assert all(math.isnan(t["tail_ratio"]) for t in turns[:-1])
    assert turns[-2]["n_count"] == 19
    assert (turns[-1]["tail_ratio"], turns[-1]["n_count"]) == (0.05, 20)
