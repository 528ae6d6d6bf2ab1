from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.gpu_load import GPU_LOAD
from stabilitykit.detectors.trace import trace
from tests.detectors.agreement import check_twins
from tests.naive.gpu_load import GpuLoadTwin

ratios = st.one_of(st.none(), st.floats(0.0, 1.0), st.sampled_from([0.0, 0.93, 1.0]))
degrees = st.one_of(st.none(), st.floats(-50.0, 200.0), st.sampled_from([70.0, 84.0, 85.0, 90.0]))
steps = st.sampled_from([None, 0.5, 1.0, 1.0, 2.0, 5.0, 12.0, 70.0, -3.0])
FAST = {"period": 2.0, "soft": 2, "hard": 3, "recover": 2, "limit": 60.0}


@st.composite
def samples(draw):
    """Draw samples of every rate, with gaps, times that run backwards and none."""
    now, rows = 100.0, []
    for memory, sm, temperature, step in draw(st.lists(st.tuples(ratios, ratios, degrees, steps), max_size=60)):
        now += step or 0.0
        time = None if step is None else now
        rows.append({"memory": memory, "sm": sm, "temperature": temperature, "time": time})
    return rows


def card(memory, sm, celsius, count=1, **more):
    """Give equal samples of a card."""
    return [{"memory": memory, "sm": sm, "temperature": celsius, **more}] * count


@given(samples(), st.sampled_from([{}, FAST]))
def test_is_naive_twin(rows, settings):
    """Scores, trips and the baseline are those of the naive twin, whatever comes when."""
    check_twins(GPU_LOAD, GpuLoadTwin, rows, settings)


@pytest.mark.capability("issue 3 §1: GPU load score with a continuous weight of the temperature, as worked out")
@pytest.mark.parametrize(("celsius", "score"), [(70, 73.56), (72, 78.28), (78, 88.81), (85, 91.43), (95, 95.18)])
def test_worked_examples(celsius, score):
    """The examples of B2.3: memory 82.3 %, SMs 76.1 %."""
    assert trace(GPU_LOAD, card(0.823, 0.761, celsius))[0]["score"] == pytest.approx(score, abs=0.0051)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(20, 100)), min_size=1, max_size=30))
def test_percentiles_are_numpys(rows):
    """The score is that of numpy.percentile over the last twelve samples."""
    got = trace(GPU_LOAD, [dict(zip(("memory", "sm", "temperature"), row, strict=True)) for row in rows])[-1]["score"]
    memory, sm, celsius = np.array(rows[-12:]).T
    top = celsius.max()
    weight = 0.8 if top <= 70 else min(1.5, 0.8 + (top - 70) * 0.12)
    wanted = 40 * np.percentile(memory, 90) + 35 * np.percentile(sm, 85) + 0.25 * top * weight
    assert got == pytest.approx(wanted, rel=1e-12)


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 110.0), st.floats(0.0, 5.0))
def test_more_load_is_no_lower_score(memory, sm, celsius, more):
    """The score never falls when a sensor rises, and is continuous in the temperature."""
    low, high = (trace(GPU_LOAD, card(memory, sm, c))[0]["score"] for c in (celsius, celsius + more))
    assert low <= high <= low + 0.25 * (1.5 + 0.12 * 115.0) * more + 1e-9


@pytest.mark.capability("issue 3 §1: GPU load trips softly after three periods, hard after five, recovers after six")
def test_trips_and_recovers():
    """Three periods over 92 are soft, five hard; six below 87 end it; 87 to 92 end nothing."""
    rows = card(0.95, 1.0, 80, 5) + card(0.95, 1.0, 66, 20) + card(0.6, 0.5, 60, 20)
    turns = trace(GPU_LOAD, rows)
    assert [t["is_soft"] for t in turns[:6]] == [0, 0, 1, 1, 1, 1]
    assert [t["is_hard"] for t in turns[:6]] == [0, 0, 0, 0, 1, 1]
    assert 85 < turns[24]["score"] < 87
    over = [n for n, t in enumerate(turns) if t["score"] >= 87]
    ended = next(n for n, t in enumerate(turns) if n > 5 and t["is_hard"] == 0)
    assert ended == max(over) + 6
    assert turns[-1]["is_soft"] == 0


def test_between_the_limits_nothing_ends():
    """A score of 87 to 92 keeps a trip."""
    turns = trace(GPU_LOAD, card(0.95, 1.0, 80, 5) + card(0.95, 1.0, 71, 40))
    assert 87 < turns[-1]["score"] < 92
    assert turns[-1]["is_hard"] == 1


@pytest.mark.capability("issue 3 §1: 85 C held for two periods trips hard, a single hot sample does not")
def test_heat_counts_by_medians():
    """Two samples of 92 C in a period of five change nothing; two periods of 85 C trip hard, whatever the load."""
    spiky = [85.0 if n % 5 < 2 else 70.0 for n in range(100)]
    held = [70.0] * 20 + [85.0] * 16
    rows = [
        [{"temperature": v, "memory": 0.1, "sm": 0.1, "time": float(n)} for n, v in enumerate(t)] for t in (spiky, held)
    ]
    calm, hot = (trace(GPU_LOAD, r) for r in rows)
    assert not any(t["is_hard"] == 1 for t in calm)
    assert next(n for n, t in enumerate(hot) if t["is_hard"] == 1) == 30
    assert hot[30]["is_soft"] == 0


def test_a_hot_card_does_not_recover():
    """However low its score, a card at 86 C stays tripped; at 60 C it recovers after six periods."""
    turns = trace(GPU_LOAD, card(0.1, 0.1, 86, 30) + card(0.1, 0.1, 60, 7))
    assert [t["is_hard"] for t in turns[29:]] == [1] * 6 + [0] * 2


@pytest.mark.capability("issue 3 §1: a missing GPU sensor leaves its weight to the others, and is flagged")
def test_a_missing_sensor():
    """Two sensors share the weight of three; all three missing is unknown."""
    turns = trace(GPU_LOAD, [*card(0.9, 0.5, None), *card(None, None, 60), *card(None, None, None)])
    assert turns[0]["score"] == pytest.approx((40 * 0.9 + 35 * 0.5) / 0.75)
    assert [t["is_partial"] for t in turns[:2]] == [1, 1]
    assert turns[1]["score"] == pytest.approx(60 * 0.8)
    assert all(math.isnan(v) for v in turns[2].values())
    assert math.isnan(turns[0]["is_hot"])


def test_dynamic_threshold_is_a_baseline():
    """It is 1.1 times P90 of earlier scores, and says nothing before twelve of them."""
    loads = np.linspace(0.1, 0.9, 90)
    turns = trace(GPU_LOAD, [{"memory": v, "sm": v, "temperature": 50.0} for v in loads])
    assert [math.isnan(t["dynamic_threshold"]) for t in turns[:13]] == [True] * 12 + [False]
    past = [t["score"] for t in turns[29:89]]
    assert turns[89]["dynamic_threshold"] == pytest.approx(1.1 * np.percentile(past, 90))


def test_a_long_gap_starts_anew():
    """After a minute without samples, or with a clock set back, old periods count no more."""
    hot = [{"temperature": 90.0, "time": float(n)} for n in range(12)]
    for later in (100.0, 3.0):
        turns = trace(GPU_LOAD, [*hot, {"temperature": 50.0, "time": later}, {"temperature": 50.0, "time": later + 5}])
        assert turns[11]["is_hard"] == 1
        assert math.isnan(turns[12]["score"])
        assert turns[13]["is_hard"] == 0
