from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.itl_breaker import ITL_BREAKER
from stabilitykit.detectors.trace import Instance, trace
from tests.detectors.compare import check_agreement, latencies
from tests.naive.itl_breaker import ItlBreakerTwin

WARM = [40.0] * 20
"""With the default settings: baseline 40.98, threshold 49.17."""
P90 = {"method": "p90"}

use = st.fixed_dictionaries(
    {
        "method": st.sampled_from(["shewhart_cusum", "p90", "ewma", "static"]),
        "baseline_ms": st.sampled_from([0.0, 20.0]),
        "warmup": st.sampled_from([1, 3, 20]),
        "max_freeze": st.sampled_from([1, 3, 50]),
        "drift_factor": st.sampled_from([0.0, 0.2]),
    }
)


def over(turns):
    """Give is_over turn by turn: 1, 0 or None."""
    return [None if math.isnan(t["is_over"]) else int(t["is_over"]) for t in turns]


@pytest.mark.capability("issue 2 §4: `itl_breaker` is its naive twin, Shewhart-CUSUM, p90, static and EWMA")
@given(latencies, use)
def test_is_naive_twin(rows, settings):
    """The kernel is its naive twin to the bit, extremes, ties and unknown turns among them."""
    check_agreement(ITL_BREAKER, ItlBreakerTwin, rows, settings)


@pytest.mark.capability("issue 2 §4: `itl_breaker` is its naive twin, Shewhart-CUSUM, p90, static and EWMA")
def test_every_binary_run_is_naive_twin():
    """So it is for every sequence of slow and healthy turns of length 8 after warm-up."""
    for tail in itertools.product([40.0, 120.0], repeat=8):
        turns = check_agreement(ITL_BREAKER, ItlBreakerTwin, [*WARM, *tail], P90 | {"max_freeze": 4})
        assert over(turns)[20:24] == [int(v > 50) for v in tail[:4]]


def test_is_naive_twin_past_the_halving():
    """So it is when a long session reaches 2^15 turns and the counts are halved."""
    rows = [30.0 + i % 13 for i in range(2**15 + 40)]
    turns = check_agreement(ITL_BREAKER, ItlBreakerTwin, rows, P90)
    assert turns[-1]["baseline_ms"] == turns[1000]["baseline_ms"]
    assert turns[-1]["threshold_ms"] == turns[1000]["threshold_ms"]


def test_counts_are_halved_at_2_to_the_15():
    """The 32,768th learned value halves the counts, before a uint16 can overflow."""
    instance = Instance(ITL_BREAKER)
    instance.memory[0][0] = 2**15 - 1
    instance.memory[2][116] = instance.memory[2][256 + 116 // 16] = 2**15 - 1
    instance.update({"input": 40.0})
    assert instance.memory[0][0] == 2**14
    assert instance.memory[2][:256].sum() == 2**14


@given(st.lists(st.sampled_from([40.0, 0.1, 0.7, 33.3, 100.1, 250.7, 700.3]), max_size=40), st.integers(1, 3))
def test_new_level_is_naive_twin(rows, max_freeze):
    """Learned anew without a warm-up, nothing of the old level is left, not even by rounding."""
    for method in ("shewhart_cusum", "p90", "ewma"):
        check_agreement(ITL_BREAKER, ItlBreakerTwin, rows, {"method": method, "warmup": 1, "max_freeze": max_freeze})


def test_new_mean_is_the_new_value():
    """With 33.2 + (238.9 - 33.2) != 238.9 a kept old mean would show in the last bit."""
    turns = trace(ITL_BREAKER, [33.2, 238.9, 238.9], {"method": "ewma", "warmup": 1, "max_freeze": 1})
    assert turns[2]["baseline_ms"] == 238.9


def test_freeze_is_counted_anew():
    """After the level was learned anew the next freeze is as long as the first."""
    turns = trace(ITL_BREAKER, [40.0, 100.0, 100.0, 250.0, 250.0, 700.0], P90 | {"warmup": 1, "max_freeze": 2})
    assert over(turns) == [None, 1, 1, 1, 1, 1]
    assert [round(t["baseline_ms"]) for t in turns[1:]] == [41, 41, 102, 102, 252]


@pytest.mark.capability("issue 2 §4: `itl_breaker`: a slowdown is told from the conversation's own latency")
def test_slowdown_is_over():
    """Three times the usual gap is over, an ordinary turn is not."""
    assert over(trace(ITL_BREAKER, [*WARM, 42.0, 120.0, 41.0]))[20:] == [0, 1, 0]


def test_cold_is_unknown_without_a_static_baseline():
    """Before warm-up there is no verdict; a configured baseline gives one."""
    assert over(trace(ITL_BREAKER, [200.0] * 20)) == [None] * 20
    assert over(trace(ITL_BREAKER, [200.0] * 20, {"baseline_ms": 40.0})) == [1] * 20
    assert over(trace(ITL_BREAKER, [200.0] * 21, {"baseline_ms": 40.0}))[20] == 0


def test_static_is_strict():
    """Equality is healthy; the next float is over."""
    settings = {"method": "static", "baseline_ms": 100.0}
    bound = 100.0 * 1.2
    assert over(trace(ITL_BREAKER, [bound, math.nextafter(bound, math.inf)], settings)) == [0, 1]
    assert over(trace(ITL_BREAKER, [1e9], {"method": "static"})) == [None]


def test_learned_threshold_has_a_tie_guard():
    """A statistical threshold must be exceeded by more than rounding."""
    settings = {"method": "ewma"}
    bound = 40.0 * 1.2
    assert over(trace(ITL_BREAKER, [*WARM, math.nextafter(bound, math.inf)], settings))[20] == 0
    assert over(trace(ITL_BREAKER, [*WARM, bound * (1 + 1e-8)], settings))[20] == 1


def test_unknown_turn_changes_nothing():
    """An unknown turn has no verdict, keeps the baseline and neither adds to the freeze nor ends it."""
    plain = trace(ITL_BREAKER, [*WARM, 120.0, 120.0, 120.0, 120.0], P90 | {"max_freeze": 3})
    gaps = trace(ITL_BREAKER, [*WARM, 120.0, None, 120.0, None, 120.0, 120.0], P90 | {"max_freeze": 3})
    assert math.isnan(gaps[21]["is_over"])
    assert gaps[21]["baseline_ms"] == plain[21]["baseline_ms"]
    assert over(gaps)[20:] == [1, None, 1, None, 1, None]
    assert over(plain)[20:] == [1, 1, 1, None]


def test_fault_does_not_become_the_baseline():
    """Values over the threshold are not learned while the freeze lasts."""
    for settings in (P90, {}):
        turns = trace(ITL_BREAKER, [*WARM, *[120.0] * 50], settings)
        assert {t["baseline_ms"] for t in turns[20:]} == {turns[20]["baseline_ms"]}
        assert over(turns)[20:] == [1] * 50


@pytest.mark.parametrize("known", range(8, 41))
def test_a_young_past_does_not_learn_the_jump(known):
    """From eight turns on a lasting jump stays over: slow turns that are learned never become p90."""
    turns = trace(ITL_BREAKER, [*[40.0, 41.0] * (known // 2), *[40.0] * (known % 2), *[100.0] * 10], {"warmup": 8})
    assert over(turns)[known:] == [1] * 10


def test_lasting_level_is_learned_anew():
    """After max_freeze turns over, the new level is the baseline: no trip for ever."""
    verdicts = over(trace(ITL_BREAKER, [*WARM, *[120.0] * 80]))[20:]
    assert verdicts == [1] * 50 + [None] * 19 + [0] * 11


def test_median_below_the_range_is_no_baseline():
    """A stream of zeros teaches nothing."""
    assert over(trace(ITL_BREAKER, [0.0] * 25 + [40.0]))[25] is None


def test_over_ratio_is_relative_to_the_threshold():
    """Above 1 exactly when over by itself."""
    for out in trace(ITL_BREAKER, [*WARM, 49.0, 50.0], P90)[20:]:
        assert (out["over_ratio"] > 1) == (out["is_over"] == 1)


def restless(turns):
    """Give latencies whose p90 lies a third above their median, over and over."""
    return [(35.0, 40.0, 45.0, 38.0, 58.0, 42.0, 48.0)[i % 7] for i in range(turns)]


def test_restless_past_needs_more():
    """What is over for a calm conversation is not for a restless one; the source's bound takes it for slow."""
    assert over(trace(ITL_BREAKER, [*WARM, 60.0]))[20] == 1
    assert over(trace(ITL_BREAKER, [*restless(70), 60.0]))[70] == 0
    assert over(trace(ITL_BREAKER, [*restless(70), 60.0], {"method": "static", "baseline_ms": 42.0}))[70] == 1


def test_turns_that_are_not_over_by_themselves_add_up():
    """Half as slow again is below the bound of a restless past, and yet over once it lasts; then it fades."""
    turns = trace(ITL_BREAKER, [*restless(140), *[62.0] * 40, *restless(40)])
    assert max(t["over_ratio"] for t in turns[140:180]) < 1
    verdicts = over(turns)
    assert verdicts[140] == 0
    assert 1 in verdicts[140:150]
    assert all(verdicts[150:160])
    assert not any(verdicts[-20:])
    assert not any(verdicts[20:140])
    for out in turns[20:]:
        assert out["evidence_ratio"] <= 1.5
        assert (out["evidence_ratio"] > 1 or out["over_ratio"] > 1) == (out["is_over"] == 1)


def test_one_value_is_never_enough_evidence():
    """However slow, it is over by itself and leaves the next turn healthy."""
    turns = trace(ITL_BREAKER, [*WARM, 1e7, 40.0])
    assert over(turns)[20:] == [1, 0]
    assert turns[20]["evidence_ratio"] == pytest.approx(0.51)


def test_memory_is_what_the_language_says():
    """512 bytes of histogram and the sums of its 16 octaves; none for the static method."""
    layout = ITL_BREAKER.layout(P90)
    assert layout == ITL_BREAKER.layout({"method": "shewhart_cusum"})
    assert (layout.u2 - 16) * 2 == 512
    assert ITL_BREAKER.layout({"method": "static"}).f8 == 0
