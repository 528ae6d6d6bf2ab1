from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from stabilitykit.detectors.quantile import COUNT, QUANTILE
from stabilitykit.detectors.trace import Instance, trace
from tests.detectors.compare import check_agreement, latencies
from tests.naive.quantile import QuantileTwin

BOUND = 1 / 64
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}


@pytest.mark.capability("issue 2 §4: `quantile` is its naive twin and within 1.6 % of numpy's")
@given(latencies, st.sampled_from([0.01, 1.0, 1e-9, 3e4]))
def test_is_naive_twin(rows, lowest):
    """The kernel is its naive twin to the bit, extremes and unknown turns among them."""
    check_agreement(QUANTILE, QuantileTwin, rows, {"lowest": lowest})


@hypothesis_settings(max_examples=3)
@given(st.integers(0, 2**32))
def test_is_naive_twin_when_warm(seed):
    """So it is over a thousand turns of a heavy tail that leaves the range at both ends."""
    values = np.random.default_rng(seed).pareto(0.5, 1100) * 0.01
    assert check_agreement(QUANTILE, QuantileTwin, values.tolist())[-1]["is_warm"] == 1.0


@pytest.mark.capability("issue 2 §4: `quantile` is its naive twin and within 1.6 % of numpy's")
@pytest.mark.parametrize("shape", ["lognormal", "pareto", "bimodal"])
def test_within_guarantee_of_numpy(shape):
    """Every quantile lies within 1.6 % of numpy's nearest rank."""
    rng = np.random.default_rng(7)
    x = np.exp(rng.standard_normal(2003)) * 30
    if shape == "pareto":
        x = 5 * (1 + rng.pareto(1.5, 2003))
    if shape == "bimodal":
        x *= np.where(rng.random(2003) < 0.002, 50, 1)
    out = trace(QUANTILE, [*x, None])[-1]
    for name, p in QUANTILES.items():
        assert out[name] == pytest.approx(np.quantile(x, p, method="inverted_cdf"), rel=BOUND)


def test_too_early_is_unknown():
    """Each quantile is known from the number of values on that gives its rank a meaning."""
    turns = trace(QUANTILE, [5.0] * 1001)
    first = {name: next(i for i, t in enumerate(turns) if not math.isnan(t[name])) for name in QUANTILES}
    assert first == {"p50": 20, "p90": 20, "p99": 100, "p999": 1000}
    assert [t["is_warm"] for t in turns[999:]] == [0.0, 1.0]


def test_read_before_insert():
    """A value takes no part in the quantiles of its own turn."""
    turns = trace(QUANTILE, [1.0] * 20 + [100.0] * 21)
    assert turns[20]["p90"] == pytest.approx(1.0, rel=BOUND)
    assert turns[40]["p90"] == pytest.approx(100.0, rel=BOUND)


def test_above_the_range_is_unknown():
    """A quantile above the range is not given as its upper end; one below is given as the lower."""
    out = trace(QUANTILE, [1e9] * 10 + [1.0] * 12)[-1]
    assert math.isnan(out["p90"])
    assert out["p50"] == pytest.approx(1.0, rel=BOUND)
    assert trace(QUANTILE, [0.0] * 21)[-1]["p50"] == pytest.approx(2**-7, rel=2 * BOUND)


def test_range_ends_at_24_octaves():
    """The upper end itself is outside, the float before it inside; one rank decides what is known."""
    end = 2.0**17
    assert math.isnan(trace(QUANTILE, [end] * 21)[-1]["p50"])
    inside = trace(QUANTILE, [math.nextafter(end, 0.0)] * 21)[-1]["p50"]
    assert inside == pytest.approx(end, rel=BOUND)
    assert math.isnan(trace(QUANTILE, [1.0] * 17 + [end] * 3 + [1.0])[-1]["p90"])
    assert trace(QUANTILE, [1.0] * 18 + [end] * 2 + [1.0])[-1]["p90"] == pytest.approx(1.0, rel=BOUND)


def test_halves_at_2_to_the_20():
    """At 2^20 values all counts are halved: the quantiles stay, the past fades."""
    instance = Instance(QUANTILE)
    for value in [1.0, 1.0, 1.0, 50.0, 1e9]:
        instance.update({"input": value})
    counts = instance.memory[1]
    counts[:] *= 209715
    assert counts[COUNT] == 2**20 - 1
    before = instance.update({"input": 1.0})
    after = instance.update({"input": None})
    assert counts[COUNT] == 2**19
    assert counts[COUNT + 1] == 209715 // 2
    assert after["p50"] == before["p50"]
    assert math.isnan(after["p90"])
