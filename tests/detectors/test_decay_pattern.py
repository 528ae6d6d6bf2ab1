from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.decay_pattern import DECAY_PATTERN, next_state
from stabilitykit.detectors.trace import trace
from tests.detectors.agreement import check_twins
from tests.detectors.compare import latencies
from tests.naive.decay_pattern import TABLE, DecayPatternTwin

LEVELS = [80.0] * 8
use = st.fixed_dictionaries(
    {
        "direction": st.sampled_from(["down", "up"]),
        "window": st.sampled_from([1, 2, 5]),
        "settle": st.sampled_from([1, 4, 50]),
        "recovery": st.sampled_from([0.5, 0.95, 1.0]),
    }
)


def states(values, **settings):
    """Give the state turn by turn, -1 while unknown."""
    return [-1 if math.isnan(t["state"]) else int(t["state"]) for t in trace(DECAY_PATTERN, values, settings)]


@pytest.mark.parametrize(("state", "band", "is_over"), TABLE)
@pytest.mark.capability("issue 3 §1: decay-pattern automaton with exits and recovery; equals its transition table")
def test_transition_table(state, band, is_over):
    """Every row of the table, at the middle and both edges of its band: exactly -0.05 and -0.01 are between."""
    slopes = {
        "falling": (-1e150, -0.2, math.nextafter(-0.05, -1)),
        "between": (-0.05, -0.03, -0.01),
        "flat": (math.nextafter(-0.01, 0), 0.0, 0.3, 1e150),
    }[band]
    for slope in slopes:
        assert next_state(state, slope, -0.05, -0.01, is_over) == TABLE[state, band, is_over]


@given(st.lists(st.one_of(latencies, st.just([80.0, 60.0, 45.0, 30.0])), max_size=6), use)
def test_is_naive_twin(parts, settings):
    """The kernel is its naive twin, extremes, zeros and unknown turns among them."""
    check_twins(DECAY_PATTERN, DecayPatternTwin, [{"input": v} for part in parts for v in part], settings)


def test_every_short_walk_is_naive_twin():
    """So it is on every walk of ten steps up, down or level."""
    for factors in itertools.product((0.5, 1.0, 1.8), repeat=7):
        values = [64.0, *itertools.accumulate(factors, lambda v, f: v * f, initial=64.0)]
        check_twins(DECAY_PATTERN, DecayPatternTwin, [{"input": v} for v in values], {"window": 2, "settle": 2})


@given(st.floats(1e-3, 1e6), st.integers(10, 40))
def test_level_rate_never_ramps(level, turns):
    """A rate that stays is INIT for good."""
    assert set(states([level] * turns)) == {-1, 0}


@given(st.one_of(st.floats(0.02, 0.0499), st.floats(0.0501, 0.9)), st.integers(9, 30))
def test_steady_fall_ramps(fall, turns):
    """A fall of more than 5 % a turn is RAMPING_DOWN once it fills the window, a smaller one never is."""
    falls = [80.0 * (1 - fall) ** i for i in range(turns)]
    assert (states(falls)[-1] == 1) is (fall > 0.05)


def test_stuck_low_then_back():
    """It ramps down, settles low, and is healthy again when the old level is reached."""
    walk = states([*LEVELS, 64.0, 50.0, 40.0, 30.0, *[30.0] * 8, *[79.0] * 8])
    assert [state for state, _ in itertools.groupby(walk)] == [-1, 0, 1, 2, 0]


def test_falls_again_without_recovery():
    """From STABILIZING it ramps down again, which the source's automaton cannot."""
    walk = states([*LEVELS, 50.0, 30.0, *[30.0] * 8, 20.0, 12.0, *[12.0] * 8])
    assert [state for state, _ in itertools.groupby(walk)] == [-1, 0, 1, 2, 1, 2]


def test_half_way_back_is_still_stuck():
    """90 % of the old level is no recovery."""
    assert states([*LEVELS, 50.0, 30.0, *[30.0] * 8, *[72.0] * 12])[-1] == 2


def test_settles():
    """After 50 turns the low level is the usual one, and a fall from there is a ramp."""
    walk = states([*LEVELS, 50.0, 30.0, *[30.0] * 70, 20.0, 12.0, *[12.0] * 8, *[30.0] * 8])
    assert [state for state, _ in itertools.groupby(walk)] == [-1, 0, 1, 2, 0, 1, 2, 0]


def test_latency_is_the_same_with_the_sign_flipped():
    """A latency that climbs turn after turn ramps, settles high, and comes back."""
    walk = states([40.0] * 8 + [52.0, 68.0, 88.0, 115.0] + [115.0] * 8 + [41.0] * 8, direction="up")
    assert [state for state, _ in itertools.groupby(walk)] == [-1, 0, 1, 2, 0]
    assert set(states([40.0] * 8 + [52.0, 68.0, 88.0, 115.0])) == {-1, 0}


def test_unknown_turn_keeps_the_state():
    """A turn without a value says nothing about the slope, and the state stays."""
    turns = trace(DECAY_PATTERN, [*LEVELS, 50.0, 30.0, None, 20.0])
    assert [t["state"] for t in turns[-2:]] == [1.0, 1.0]
    assert math.isnan(turns[-2]["slope"])
    assert math.isnan(turns[-2]["is_ramping"])


def test_no_change_from_zero():
    """After a rate of 0 there is no relative change; the next value has one again."""
    turns = trace(DECAY_PATTERN, [*LEVELS, 0.0, 5.0, 5.0])
    assert [math.isnan(t["slope"]) for t in turns[-3:]] == [False, True, False]
