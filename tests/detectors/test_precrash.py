from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.precrash import PRECRASH, SIGNS
from stabilitykit.detectors.trace import trace
from tests.detectors.agreement import check_twins
from tests.naive.precrash import PrecrashTwin

FULL_QUEUE = [0] * 60 + [1, 2, 3, 94]
EVEN_QUEUE = [2] * 64
FLOODED = {"keys": 1000.0, "buckets": 4096.0, "occupied": 700.0}
UP: dict[str, Any] = {
    "transition": {"transition": 9.0},
    "hash": FLOODED,
    "ring": {"ring": 3.8},
    "full": {"full": 17.0},
    "cas": {"cas": 0.00041},
    "recv": {"recv": 2.1},
    "slots": {"occupancy": FULL_QUEUE},
}
"""What puts each sign up (transition and hash: the third time)."""
DOWN: dict[str, Any] = {
    "transition": {"transition": 4.2},
    "hash": {**FLOODED, "occupied": 888.0},
    "ring": {"ring": 3.7},
    "full": {"full": 16.9},
    "cas": {"cas": 0.0004},
    "recv": {"recv": 2.09},
    "slots": {"occupancy": EVEN_QUEUE},
}

rows = st.lists(
    st.builds(
        lambda parts, step, has_time: ({k: v for part in parts for k, v in part.items()}, step, has_time),
        st.lists(st.sampled_from([*UP.values(), *DOWN.values(), {"occupancy": [0, 0, 80]}, {"keys": 3.0}]), max_size=9),
        st.sampled_from([0.0, 0.01, 0.05, 0.089, 0.142, 1.0, -0.05, 1e9, -1e9]),
        st.sampled_from([True, True, True, False]),
    ),
    max_size=30,
)


@given(rows, st.sampled_from([{}, {"ring_lead": 500.0, "full_limit": 16.5}]))
def test_is_naive_twin(steps, settings):
    """The kernel agrees with its naive twin, whatever the clock does."""
    now, given_rows = 100.0, []
    for row, step, has_time in steps:
        now += step
        given_rows.append({**row, "time": now} if has_time else row)
    check_twins(PRECRASH, PrecrashTwin, given_rows, settings, tolerance=1e-6)


@pytest.mark.parametrize("bit", range(len(SIGNS)))
def test_each_sign_has_its_bit_and_its_lead(bit):
    """A sign is up from its limit on, alone under its bit, until its lead time is over."""
    sign = SIGNS[bit]
    times = 3 if sign.name in ("transition", "hash") else 1
    lead = sign.lead_ms / 1000
    up = [{"time": 0.0, **UP[sign.name]}] * times
    turns = trace(PRECRASH, [*up, {"time": lead, "ring": 0.0}, {"time": lead + 1e-6, "ring": 0.0}])
    assert [t["active_count"] for t in turns[times - 1 :]] == [1.0, 1.0, 0.0]
    assert turns[times - 1]["active_mask"] == 2.0**bit
    assert turns[times - 1]["time_left_ms"] == pytest.approx(sign.lead_ms)
    assert math.isnan(turns[-1]["time_left_ms"])


@pytest.mark.parametrize("bit", range(len(SIGNS)))
def test_each_sign_is_down_at_its_limit(bit):
    """What does not pass the limit is known and no sign, however often it comes."""
    turns = trace(PRECRASH, [{"time": 0.0, **DOWN[SIGNS[bit].name]}] * 5)
    assert [t["active_count"] for t in turns] == [0.0] * 5


def test_two_within_the_lead_time_are_two():
    """Two distinct signs 100 ms apart are up together, 150 ms apart they are not; the same sign twice is one."""
    near = trace(PRECRASH, [{"time": 0.0, **UP["cas"]}, {"time": 0.1, **UP["full"]}])
    far = trace(PRECRASH, [{"time": 0.0, **UP["cas"]}, {"time": 0.15, **UP["full"]}])
    same = trace(PRECRASH, [{"time": 0.0, **UP["cas"]}, {"time": 0.1, **UP["cas"]}])
    assert [t[-1]["active_count"] for t in (near, far, same)] == [2.0, 1.0, 1.0]
    assert near[-1]["time_left_ms"] == pytest.approx(42.0)


def test_without_time_only_one_sample_counts():
    """Signs of one sample are simultaneous; without a time none is carried over to the next."""
    turns = trace(PRECRASH, [{**UP["cas"], **UP["full"]}, {**UP["ring"]}, {}])
    assert [t["active_count"] for t in turns[:2]] == [2.0, 1.0]
    assert all(math.isnan(value) for value in turns[2].values())
    assert math.isnan(turns[0]["time_left_ms"])


def test_unknown_is_not_healthy():
    """With nothing known nothing is said, unless a lead time still runs."""
    turns = trace(PRECRASH, [{"time": 0.0}, {"time": 1.0, **UP["cas"]}, {"time": 1.1}, {"time": 2.0}])
    counts = [t["active_count"] for t in turns]
    assert [math.isnan(c) for c in counts] == [True, False, False, True]
    assert counts[1:3] == [1.0, 1.0]


def test_the_empty_queue_is_no_sign():
    """A queue that is always empty has a narrow spread at the harmless end."""
    assert trace(PRECRASH, [{"time": 0.0, "occupancy": FULL_QUEUE[::-1]}])[0]["active_count"] == 0.0
