from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from stabilitykit.detectors.trace import Instance, trace
from stabilitykit.detectors.transition_spike import TRANSITION_SPIKE
from stabilitykit.kernels.spike import BURST, COUNT, SPIKES
from tests.detectors.compare import check_agreement, latencies
from tests.naive.transition_spike import TransitionSpikeTwin


@given(latencies, st.sampled_from([0.01, 1.0, 1e-9]), st.sampled_from([4.2, 1e-6, 40.0]))
def test_is_naive_twin(rows, lowest, floor):
    """The kernel is its naive twin to the bit, extremes and unknown turns among them."""
    assert len(check_agreement(TRANSITION_SPIKE, TransitionSpikeTwin, rows, {"lowest": lowest, "floor": floor})) == len(
        rows
    )


@hypothesis_settings(max_examples=3)
@given(st.integers(0, 2**32), st.sampled_from([0.01, 8.0]))
def test_is_naive_twin_when_warm(seed, scale):
    """So it is over a thousand turns of a heavy tail; its p99.9 is above the range where the scale is large."""
    values = np.random.default_rng(seed).pareto(0.5, 1200) * scale
    turns = check_agreement(TRANSITION_SPIKE, TransitionSpikeTwin, values.tolist(), {"floor": 1e-3})
    assert math.isnan(turns[-1]["threshold_us"]) is (scale == 8.0)


@pytest.mark.parametrize("shape", ["lognormal", "pareto"])
def test_threshold_is_numpys_nearest_rank(shape):
    """The threshold lies above p99.9 of numpy's inverted CDF, by less than 3.2 %."""
    rng = np.random.default_rng(11)
    x = np.exp(rng.standard_normal(2500)) * 30 if shape == "lognormal" else 5 * (1 + rng.pareto(1.5, 2500))
    for n in (1000, 1999, 2500):
        exact = np.quantile(x[:n], 0.999, method="inverted_cdf")
        assert exact <= trace(TRANSITION_SPIKE, [*x[:n], None])[-1]["threshold_us"] <= exact * 1.0318


def test_floor_serves_until_a_thousand():
    """The floor is the threshold while cold, and never undercut when warm."""
    turns = trace(TRANSITION_SPIKE, [2.0] * 999 + [5.0, 5.0, 1.0])
    assert [turns[i]["is_spike"] for i in (998, 999, 1000)] == [0.0, 1.0, 1.0]
    assert {t["threshold_us"] for t in turns[:1001]} == {4.2}


def test_what_equals_its_past_is_no_spike():
    """A constant stream above the floor never spikes once its past is known."""
    turns = trace(TRANSITION_SPIKE, [47.3] * 1100)
    assert {t["is_spike"] for t in turns[1000:]} == {0.0}


def test_burst_counts_the_last_hundred():
    """Spikes leave the count when a hundred later transitions have come; unknown ones do not push them out."""
    turns = trace(TRANSITION_SPIKE, [1.0] * 500 + [9.0, 1.0, 9.0] + [None] * 40 + [1.0] * 100)
    counts = [t["burst_count"] for t in turns]
    assert counts[500:503] == [1.0, 1.0, 2.0]
    assert all(math.isnan(c) for c in counts[503:543])
    assert counts[543:640] == [2.0] * 97
    assert counts[640:643] == [1.0, 1.0, 0.0]


def test_three_in_a_hundred_is_rare_in_health():
    """Of 20,000 independent heavy-tailed transitions fewer than a few hundred see three spikes in a hundred."""
    rng = np.random.default_rng(5)
    turns = trace(TRANSITION_SPIKE, np.exp(rng.standard_normal(20_000)) * 20)[2000:]
    assert 0.0004 < np.mean([t["is_spike"] for t in turns]) < 0.0016
    assert np.mean([t["burst_count"] >= 3 for t in turns]) < 0.005


def test_above_the_range_is_unknown():
    """Where p99.9 is above the range nothing is said about a transition, and the burst goes on counting."""
    out = trace(TRANSITION_SPIKE, [1e9] * 1001)[-1]
    assert math.isnan(out["is_spike"])
    assert math.isnan(out["threshold_us"])
    assert out["burst_count"] == BURST - 1


def test_halves_at_2_to_the_20():
    """At 2^20 values the counts are halved and the burst stays."""
    instance = Instance(TRANSITION_SPIKE)
    for value in [1.0, 1.0, 1.0, 50.0, 50.0]:
        instance.update({"input": value})
    counts = instance.memory[1]
    spikes = counts[SPIKES]
    counts[:COUNT] *= 209715
    counts[COUNT] = 2**20 - 1
    instance.update({"input": 1.0})
    assert counts[COUNT] == 2**19
    assert counts[SPIKES] == spikes == 2
