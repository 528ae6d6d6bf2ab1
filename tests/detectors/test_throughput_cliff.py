from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.throughput_cliff import THROUGHPUT_CLIFF
from stabilitykit.detectors.trace import Instance, trace
from tests.detectors.agreement import check_twins
from tests.detectors.compare import latencies
from tests.naive.throughput_cliff import ThroughputCliffTwin

use = st.fixed_dictionaries(
    {
        "fraction": st.sampled_from([0.0, 0.25, 1 / 28, 1.0]),
        "warmup": st.sampled_from([1, 3, 8]),
        "max_freeze": st.sampled_from([1, 3, 50]),
    }
)


def cliffs(values, **settings):
    """Give the turns (from 1) that are a cliff."""
    return [i for i, t in enumerate(trace(THROUGHPUT_CLIFF, values, settings), 1) if t["is_cliff"] == 1]


@given(latencies, use)
def test_is_naive_twin(rows, settings):
    """The kernel is its naive twin, extremes and unknown turns among them."""
    check_twins(THROUGHPUT_CLIFF, ThroughputCliffTwin, [{"input": v} for v in rows], settings, tolerance=1e-15)


@given(st.lists(st.floats(0.1, 1000.0), min_size=8, max_size=40))
def test_baseline_is_the_median(values):
    """With nothing left out the baseline is the lower median within 3.1 %."""
    out = trace(THROUGHPUT_CLIFF, [*values, None], {"fraction": 0.0})[-1]
    assert out["baseline"] == pytest.approx(statistics.median_low(values), rel=1 / 32)


def test_source_fires():
    """85 tokens/s that fall to below 3 (A1.1) are a cliff of factor 28, by the default and by the cited factor."""
    rates = [85.0] * 8 + [2.9]
    assert cliffs(rates) == [9]
    assert cliffs(rates, fraction=1 / 28) == [9]


def test_half_speed_is_no_cliff():
    """A rate halved by others is no cliff; exactly a quarter of the median is none either."""
    assert cliffs([80.0] * 8 + [40.0] * 8 + [79.0] * 8) == []
    base = trace(THROUGHPUT_CLIFF, [80.0] * 8 + [None])[-1]["baseline"]
    assert cliffs([80.0] * 8 + [base / 4, math.nextafter(base / 4, 0)]) == [10]


def test_cold_is_unknown():
    """Before the warm-up nothing is said, whatever happens."""
    turns = trace(THROUGHPUT_CLIFF, [80.0] * 7 + [1.0])
    assert all(math.isnan(t["is_cliff"]) for t in turns)


def test_collapse_is_not_learned_until_it_lasts():
    """49 turns in the cliff leave the median, the 50th makes the low rate the usual one."""
    turns = trace(THROUGHPUT_CLIFF, [80.0] * 8 + [4.0] * 60)
    assert [i for i, t in enumerate(turns, 1) if t["is_cliff"] == 1] == list(range(9, 59))
    assert turns[-1]["baseline"] == pytest.approx(4.0, rel=1 / 32)


def test_counts_are_halved_before_they_overflow():
    """The 32,768th learned rate halves the counts."""
    instance = Instance(THROUGHPUT_CLIFF)
    for _ in range(8):
        instance.update({"input": 64.0})
    counts = instance.memory[2]
    (place,) = (int(k) for k in counts[:256].nonzero()[0])
    instance.memory[0][0] = counts[place] = counts[256 + place // 16] = 2**15 - 1
    instance.update({"input": 64.0})
    assert instance.memory[0][0] == counts[place] == 2**14
