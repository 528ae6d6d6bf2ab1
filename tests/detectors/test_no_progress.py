from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.no_progress import NO_PROGRESS
from stabilitykit.detectors.trace import trace
from tests.detectors.agreement import check_twins
from tests.naive.no_progress import NoProgressTwin

ms = st.one_of(st.none(), st.floats(0, 1e6), st.sampled_from([0.0, 1e9, 1e-300]))
rows = st.lists(
    st.fixed_dictionaries({"age": ms, "itl": ms, "ttft": ms, "tokens": st.sampled_from([None, 0.0, 1.0, 80.0])}),
    max_size=40,
)
USUAL = [{"itl": 40.0, "ttft": 1000.0}] * 4


def last(**open_stream):
    """Give what is said of an open stream after four usual turns."""
    return trace(NO_PROGRESS, [*USUAL, open_stream])[-1]


@given(rows, st.sampled_from([1, 3]))
def test_is_naive_twin(turns, warmup):
    """The kernel is its naive twin, extremes and unknown turns among them."""
    check_twins(NO_PROGRESS, NoProgressTwin, turns, {"warmup": warmup})


def test_silence_in_the_middle():
    """Ten seconds are tolerated even at 250 times the usual gap; anything above is a hang."""
    assert last(age=10_000.0, tokens=5.0) == {"silence_ratio": 250.0, "is_hung": 0.0}
    assert last(age=10_001.0, tokens=5.0)["is_hung"] == 1.0


def test_a_slow_model_may_be_quiet_for_longer():
    """At 2 s a token 150 s are only 75 times the usual gap."""
    turns = trace(NO_PROGRESS, [{"itl": 2000.0}] * 4 + [{"age": 150_000.0, "tokens": 5.0}])
    assert turns[-1] == {"silence_ratio": 75.0, "is_hung": 0.0}


def test_before_the_first_token_another_measure_holds():
    """No token yet: 15 s are 15 times the usual first token, 21 s are too long; unknown tokens count as none."""
    assert last(age=15_000.0, tokens=0.0)["is_hung"] == 0.0
    assert last(age=21_000.0, tokens=0.0)["is_hung"] == 1.0
    assert last(age=15_000.0) == last(age=15_000.0, tokens=0.0)


def test_cold_is_unknown():
    """On the first turns there is nothing to compare with."""
    assert math.isnan(trace(NO_PROGRESS, [*USUAL[:1], {"age": 1e6}])[-1]["is_hung"])


def test_no_open_stream_is_unknown():
    """A turn that ended says nothing of silence."""
    assert math.isnan(last(itl=40.0)["silence_ratio"])
