from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.token_frames import TOKEN_FRAMES
from stabilitykit.detectors.trace import trace
from tests.detectors.agreement import check_compiled, check_twins
from tests.naive.token_frames import NaiveTokenFrames

NUMBERS = st.one_of(st.integers(-3, 40), st.sampled_from([-(2**63), 2**63 - 1, 2**53]))
TIMES = st.one_of(st.integers(-3, 40).map(lambda k: k * 50_000), NUMBERS)
TURNS = st.fixed_dictionaries(
    {"frames": st.one_of(st.none(), st.lists(NUMBERS, max_size=9)), "times": st.lists(TIMES, max_size=9)}
)


@pytest.mark.capability("issue 3 §1: `token_frames` is its naive twin")
@given(st.lists(TURNS, max_size=5), st.sampled_from([1, 20_000, 100_000]))
def test_equals_the_naive_twin(rows, frame):
    """Any frames and times: kernel and twin agree, unknowns included."""
    check_twins(TOKEN_FRAMES, NaiveTokenFrames, [{}, *rows], {"frame": frame})


@given(st.lists(TURNS, max_size=5))
def test_compiled_equals_plain(rows):
    """Machine code gives the same bits."""
    check_compiled(TOKEN_FRAMES, rows)


@pytest.mark.capability("issue 3 §1: token frames: the source's two rows, drift 3 and 1, the second one backwards")
def test_the_sources_two_rows():
    """Token 5821 belongs into frame 12 and stands in 15; token 764 into 13 and stands in 14, which runs backwards."""
    for rows, drift, back in (([(12, 15)], 3, 0), ([(13, 14)], 1, 0), ([(12, 15), (13, 14)], 3, 1)):
        times = [100_000 * expected for expected, _ in rows]
        (out,) = trace(TOKEN_FRAMES, [{"times": times, "frames": [actual for _, actual in rows]}])
        assert (out["drift"], out["max_drift"], out["backwards_count"], out["excess_count"]) == (drift, drift, back, 0)


def test_what_has_no_partner_is_reported():
    """The source's zip drops a tail in silence; here its length is said, with its sign."""
    outs = trace(TOKEN_FRAMES, [{"frames": [0, 1, 2], "times": [0]}, {"frames": [0], "times": [0, 100_000]}])
    assert [out["excess_count"] for out in outs] == [2, -1]
    assert [out["drift"] for out in outs] == [0, 0]


def test_frames_that_come_too_early_drift_downwards():
    """The drift has a sign, and the first of the greatest is named."""
    (out,) = trace(TOKEN_FRAMES, [{"frames": [0, 1, 1, 1], "times": [0, 100_000, 299_999, 399_999]}])
    assert (out["drift"], out["max_drift"], out["index"]) == (-2, 2, 3)
