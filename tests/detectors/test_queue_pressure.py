from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from stabilitykit.detectors.queue_pressure import QUEUE_PRESSURE
from stabilitykit.detectors.trace import trace
from tests.detectors.agreement import check_twins
from tests.naive.queue_pressure import QueuePressureTwin

counts = st.lists(st.one_of(st.integers(0, 40), st.sampled_from([0, 0, 10**12, -1])), max_size=70)
times = st.one_of(st.none(), st.floats(0.0, 100.0), st.sampled_from([0.0, 1.0, 1.0, 1e300]))
samples = st.lists(st.builds(lambda c, t: {"occupancy": c or None, "recv": t}, counts, times), max_size=40)


@given(samples, st.sampled_from([1, 2, 9, 64]), st.sampled_from([1, 64]))
def test_is_naive_twin(rows, window, least):
    """Entropy, place and median agree with the naive twin, negative counts and unknown samples among them."""
    check_twins(QUEUE_PRESSURE, QueuePressureTwin, rows, {"window": window, "least_items": least})


@given(st.lists(st.integers(0, 50), min_size=2, max_size=64).filter(lambda c: sum(c) >= 64))
def test_entropy_is_scipys_with_the_correction(items):
    """The entropy is scipy's plus (K - 1) / (2 n ln 2), never above an even spread's."""
    out = trace(QUEUE_PRESSURE, [items])[0]
    held = sum(c > 0 for c in items)
    wanted = min(entropy(items, base=2) + (held - 1) / (2 * sum(items) * math.log(2)), math.log2(len(items)))
    assert out["entropy_bits"] == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(("items", "mean"), [(64, 5.63), (256, 5.98), (1024, 6.00)])
def test_bias_of_the_formulas(items, mean):
    """Evenly spread items over 64 slots give what B1.3 measured, and never fall below 2.3 bits."""
    rng = np.random.default_rng(1)
    thrown = [np.bincount(rng.integers(0, 64, items), minlength=64) for _ in range(400)]
    bits = [t["entropy_bits"] for t in trace(QUEUE_PRESSURE, thrown)]
    assert np.mean(bits) == pytest.approx(mean, abs=0.03)
    assert min(bits) > 2.3


def test_empty_and_few_are_unknown():
    """No items, too few items and an absent array are unknown, not zero."""
    turns = trace(QUEUE_PRESSURE, [[0] * 64, [63], [], [64], [64, 0]])
    assert [math.isnan(t["entropy_bits"]) for t in turns] == [True, True, True, False, False]
    assert math.isnan(turns[3]["normalised_ratio"])
    assert (turns[4]["entropy_bits"], turns[4]["normalised_ratio"], turns[4]["fill_ratio"]) == (0.0, 0.0, 0.0)


def test_place_tells_full_from_empty():
    """The same narrow spread at either end has the same entropy and another place."""
    full, empty = trace(QUEUE_PRESSURE, [[0] * 60 + [1, 2, 3, 94], [94, 3, 2, 1] + [0] * 60])
    assert full["entropy_bits"] == pytest.approx(empty["entropy_bits"], abs=1e-12)
    assert full["fill_ratio"] > 0.98 > 0.02 > empty["fill_ratio"]


def test_one_stall_does_not_move_the_median():
    """The median of nine samples follows a level, not a value; it is known from five on."""
    turns = trace(QUEUE_PRESSURE, [{"recv": v} for v in [0.1] * 6 + [50.0] + [0.1] * 3 + [3.0] * 5])
    medians = [t["recv_median_ms"] for t in turns]
    assert [math.isnan(m) for m in medians[:5]] == [True] * 4 + [False]
    assert medians[4:13] == [0.1] * 9
    assert medians[13:] == [3.0, 3.0]
