from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.sources.openai.arrivals import Arrivals


def arrived(chunks, sent=0.0):
    """Give the times of chunks with so many tokens each."""
    times = Arrivals(sent)
    for at, count in chunks:
        times.event(at)
        times.token(at, count)
    return times


def test_chunks_of_several_tokens_are_divided():
    """1 s to a chunk of five tokens and 0.1 s to one: 1.1 s over six tokens."""
    times = arrived([(1.0, 1), (2.0, 5), (2.1, 1)])
    assert times.itl_ms(None, True) == pytest.approx(1100 / 6)
    assert times.ttft_ms() == 1000.0
    assert times.rt_ms() == 2100.0


def test_final_count_is_distributed():
    """Four chunks of an unknown number and twelve tokens: three each."""
    times = arrived([(1.0, None), (1.3, None), (1.6, None), (1.9, None)])
    assert times.itl_ms(12, True) == pytest.approx(100.0)
    assert times.itl_ms(None, True) == pytest.approx(300.0)
    assert times.itl_ms(12, False) == pytest.approx(300.0)
    assert times.itl_ms(2, True) == pytest.approx(300.0)  # a chunk holds one at least


def test_known_and_unknown_chunks():
    """Nine tokens, of which five are counted: two for each of the two other chunks."""
    times = arrived([(1.0, 1), (1.4, 4), (1.6, None), (1.8, None)])
    assert times.itl_ms(9, True) == pytest.approx(800 / 8)
    assert not times.is_counted


@pytest.mark.capability("issue 4 §1: a clock that goes back costs one gap, and is a fault")
def test_clock_goes_back():
    """The gap that is no gap is left out; the others count."""
    times = arrived([(5.0, 1), (5.1, 1), (4.0, 1), (4.1, 1)])
    assert times.itl_ms(None, True) == pytest.approx(100.0)
    assert times.went_back == 1
    assert arrived([(1.0, 1)], sent=9.0).ttft_ms() is None


def test_silence():
    """Since the last token, before the first since the request; never negative."""
    times = Arrivals(10.0)
    assert times.silence_ms(12.5) == 2500.0
    times.token(13.0, 1)
    assert times.silence_ms(13.5) == 500.0
    assert times.silence_ms(12.0) == 0.0


@given(st.lists(st.tuples(st.floats(0, 1e6), st.one_of(st.none(), st.integers(1, 50))), min_size=2, max_size=40))
def test_mean_gap_is_that_of_the_single_gaps(chunks):
    """With known counts the mean is that of a list of gaps, each chunk's divided by its tokens."""
    chunks = sorted((at, count or 1) for at, count in chunks)
    gaps = [g for (a, _), (b, n) in pairwise(chunks) for g in [1e3 * (b - a) / n] * n]
    assert arrived(chunks).itl_ms(None, True) == pytest.approx(sum(gaps) / len(gaps), abs=1e-6)
