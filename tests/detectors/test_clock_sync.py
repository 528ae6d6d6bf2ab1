from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import theilslopes

from stabilitykit.detectors.clock_sync import CLOCK_SYNC
from stabilitykit.detectors.trace import trace
from tests.detectors.agreement import check_twins
from tests.naive.clock_sync import ClockSyncTwin

TENTH = 100_000_000
EPOCH = 1_790_000_000_000_000_000


@st.composite
def streams(draw):
    """Draw readings of a drifting clock with jitter, late ones, steps, resets, gaps, nonsense, and none at all."""
    local, ahead, rows = draw(st.sampled_from([0, -(10**12), EPOCH])), draw(st.integers(-(10**6), 10**6)), []
    ppm = draw(st.sampled_from([0, 50, -150, 1000]))
    for _ in range(draw(st.integers(1, 45))):
        event = draw(st.sampled_from(["read"] * 8 + ["late", "step", "reset", "gap", "none", "twice", "wild"]))
        local += TENTH + draw(st.integers(-1000, 1000))
        ahead += TENTH * ppm // 1_000_000 + (draw(st.integers(-(10**7), 10**7)) if event == "step" else 0)
        local -= 10**10 if event == "reset" else 0
        local += 2**54 if event == "gap" else 0
        jitter = draw(st.integers(-60, 60)) + (10**6 if event == "late" else 0)
        trip = 1000 + abs(jitter) * draw(st.sampled_from([1, 20]))
        reading = [2**62 if event == "wild" else local, local + ahead + jitter, trip]
        rows.append(None if event == "none" else reading * 2 if event == "twice" else reading)
    return rows


def drifting(ppm, jitter, n=200, seed=1, start=EPOCH):
    """Give readings every 100 ms of a clock that runs fast by some ppm, and the true offsets."""
    rng = np.random.default_rng(seed)
    times = np.arange(n) * TENTH
    ahead = 5_000 + times * ppm // 1_000_000
    noise = rng.normal(0.0, jitter, n).round().astype(int)
    return [[start + int(t), start + int(t + a + e)] for t, a, e in zip(times, ahead, noise, strict=True)], ahead


@given(streams(), st.sampled_from([2, 3]), st.sampled_from([(20, 10), (5, 3), (7, 7)]))
def test_is_naive_twin(rows, columns, sizes):
    """Offset, skew and residual are those of exact fractions, whatever happens to the clocks."""
    readings = [{"samples": row and [v for k, v in enumerate(row) if columns == 3 or k % 3 < 2]} for row in rows]
    settings = {"columns": columns, "window": sizes[0], "least": sizes[1]}
    check_twins(CLOCK_SYNC, ClockSyncTwin, readings, settings, tolerance=1e-6)


@pytest.mark.capability("issue 3 §1: clock offset and skew by a line through the last 20 readings, as numpy.polyfit")
@pytest.mark.parametrize("ppm", [-120, 0, 50])
def test_is_polyfit_and_near_theil_sen(ppm):
    """Without outliers the line is numpy.polyfit's, and the skew lies beside scipy's Theil-Sen slope."""
    readings, _ = drifting(ppm, 20)
    turns = trace(CLOCK_SYNC, readings)
    full = [n for n in range(20, len(readings)) if turns[n]["n_count"] == 20]
    assert len(full) > 100
    for n in full:
        rows = np.array([[a - EPOCH, b - a] for a, b in readings[n - 19 : n + 1]], float)
        x, y = (rows[:, 0] - rows[-1, 0]) / 1e9, rows[:, 1]
        slope, height = np.polyfit(x, y, 1)
        assert turns[n]["skew_ppm"] == pytest.approx(slope / 1000, abs=1e-6)
        assert turns[n]["offset_ns"] == pytest.approx(height, abs=1e-3)
        assert turns[n]["skew_ppm"] == pytest.approx(theilslopes(y, x).slope / 1000, abs=0.05)


@pytest.mark.capability("issue 3 §1: clock readings with long round trips and outliers are left out, steps refit")
def test_outliers_steps_and_resets():
    """A late reading moves nothing, a step is followed after three readings, a counter that wraps begins anew."""
    readings, ahead = drifting(50, 20, 120)
    readings[40][1] += 3_000_000
    for row in readings[80:]:
        row[1] += 9_000_000
    wrapped = [[a - readings[100][0] + 1000, b - readings[100][0] + 1000] for a, b in readings[100:]]
    turns = trace(CLOCK_SYNC, readings[:100] + wrapped)
    error = [t["offset_ns"] - a for t, a in zip(turns, ahead, strict=True)]
    assert max(abs(e) for e in error[10:82]) < 60
    assert [math.isnan(e) for e in error[82:90]] == [True] * 7 + [False]
    assert max(abs(e - 9_000_000) for e in error[89:100]) < 60
    assert [t["n_count"] for t in turns[100:103]] == [1, 2, 3]
    assert abs(error[119] - 9_000_000) < 60


def test_long_round_trips_are_left_out():
    """Readings delayed on the way out tell so by their round trip; without the third column they count."""
    readings, ahead = drifting(50, 20, 60)
    rng = np.random.default_rng(5)
    delays = [int(d) if late else 0 for d, late in zip(rng.exponential(400, 60), rng.random(60) < 0.4, strict=True)]
    three = [[a, b - d // 2, 1000 + d] for (a, b), d in zip(readings, delays, strict=True)]
    with_trips = trace(CLOCK_SYNC, three, {"columns": 3})
    without = trace(CLOCK_SYNC, [row[:2] for row in three])
    worst = [
        max(abs(t["offset_ns"] - a) for t, a in zip(turns[30:], ahead[30:], strict=True))
        for turns in (with_trips, without)
    ]
    assert worst[0] < worst[1]


def test_a_clock_that_stands_still_is_bounded():
    """A remote clock that stopped is no crystal: the slope is kept at the bound, and flagged."""
    turns = trace(CLOCK_SYNC, [[n * TENTH, 7] for n in range(1, 30)])
    assert turns[-1]["skew_ppm"] == pytest.approx(-200.0)
    assert turns[-1]["is_bounded"] == 1.0


def test_halves_of_readings_are_none():
    """An odd number at the end is left over; one number alone is no reading."""
    turns = trace(CLOCK_SYNC, [[5], [1, 2, 3], [1, 2]])
    assert [t["n_count"] for t in turns[1:]] == [1, 1]
    assert math.isnan(turns[0]["n_count"])
