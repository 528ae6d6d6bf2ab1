from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.launch_latency import LAUNCH_LATENCY
from stabilitykit.detectors.trace import trace
from tests.detectors.agreement import check_twins
from tests.naive.launch_latency import LaunchLatencyTwin

times = st.one_of(st.none(), st.floats(0.0, 1e3), st.sampled_from([0.0, 0.5, 1e12]))
launches = st.lists(st.fixed_dictionaries(dict.fromkeys(("host", "queue", "sync", "total"), times)), max_size=20)
known = st.tuples(*[st.floats(0.0, 1e6)] * 3)


@given(launches, st.sampled_from([0.0, 0.5, 10.0]))
def test_is_naive_twin(rows, resolution):
    """The kernel is its naive twin, unknown parts among them."""
    check_twins(LAUNCH_LATENCY, LaunchLatencyTwin, rows, {"resolution": resolution})


@given(known)
def test_shares_add_up(parts):
    """The bound is numpy's sum, and the shares add up to 1 unless nothing took any time."""
    out = trace(LAUNCH_LATENCY, [dict(zip(("host", "queue", "sync"), parts, strict=True))])[0]
    assert out["bound_us"] == pytest.approx(np.sum(parts), rel=1e-15)
    shares = [out[f"{name}_share"] for name in ("host", "queue", "sync")]
    assert sum(shares) == pytest.approx(1.0, rel=1e-12) if sum(parts) > 0 else np.isnan(shares).all()


@given(known, st.floats(0.0, 1e6))
def test_a_whole_shorter_than_its_parts_is_inconsistent(parts, total):
    """Only a sum that exceeds the measured whole by more than the resolution is."""
    out = trace(LAUNCH_LATENCY, [dict(zip(("host", "queue", "sync", "total"), (*parts, total), strict=True))])[0]
    assert out["is_inconsistent"] == (total - sum(parts) < -0.5)


@pytest.mark.capability("issue 3 §1: launch latency as host, queue and synchronisation with shares and residual")
def test_where_the_time_goes():
    """A launch in order, one that waits in the stream, one whose kernel begins before the call returns."""
    rows = [
        {"host": 4.0, "queue": 1.5, "sync": 0.0, "total": 5.5},
        {"host": 4.0, "queue": 95.0, "sync": 1.0, "total": 103.0},
        {"host": 78.512, "queue": 0.0, "sync": 0.0, "total": 65.881},
        {"host": 4.0, "queue": 1.5, "sync": 0.0, "total": 5.0},
    ]
    turns = trace(LAUNCH_LATENCY, rows)
    assert [round(t["queue_share"], 2) for t in turns] == [0.27, 0.95, 0.0, 0.27]
    assert [round(t["residual_us"], 3) for t in turns] == [0.0, 3.0, -12.631, -0.5]
    assert [t["is_inconsistent"] for t in turns] == [0, 0, 1, 0]


@pytest.mark.parametrize("missing", ["host", "queue", "sync"])
def test_an_unknown_part_is_not_zero(missing):
    """Without one of the parts nothing is known of the others' shares."""
    row = {"host": 4.0, "queue": 1.0, "sync": 0.0, "total": 5.0}
    out = trace(LAUNCH_LATENCY, [row | {missing: None}])[0]
    assert [name for name, value in out.items() if not math.isnan(value)] == ["tolerated_us"]
