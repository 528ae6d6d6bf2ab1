"""Thinning for drawing: peaks, dips, gaps and the worst state survive."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.cli.report.series import bands, context_use, thinned
from stabilitykit.turn import Turn

values = st.lists(st.one_of(st.just(math.nan), st.floats(-1e6, 1e6)), min_size=1, max_size=300)


@given(values, st.integers(4, 60))
def test_thinning_keeps_the_extremes(series, most):
    """The greatest and the least value stay, the order too, and the number is bounded."""
    turns = list(range(1, len(series) + 1))
    found = list(thinned(turns, series, most))
    assert len(found) <= max(most, 2) + 2
    assert [t for t, _ in found] == sorted({t for t, _ in found})
    known, kept = [v for v in series if v == v], [v for _, v in found if v == v]
    assert (min(known, default=0), max(known, default=0)) == (min(kept, default=0), max(kept, default=0))


def test_short_series_stay_as_they_are():
    """Below the limit nothing is left out."""
    assert list(thinned([1, 2], [5.0, 6.0], 10)) == [(1, 5.0), (2, 6.0)]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=200), st.integers(1, 20))
def test_bands_cover_every_turn_and_keep_the_worst(states, most):
    """Bands are few, in order, and never hide the worst state."""
    found = bands(list(range(1, len(states) + 1)), states, most)
    assert len(found) <= most
    assert max(b.state for b in found) == max(states)
    assert (found[0].first, found[-1].last) == (1, len(states))
    assert all(a.last < b.first for a, b in itertools.pairwise(found))


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        ({"context_usage_ratio": 0.5}, 0.5),
        ({"input_tokens": 900.0, "output_tokens": 124.0, "context_window_tokens": 2048.0}, 0.5),
        ({"input_tokens": 1024.0, "context_window_tokens": 2048.0}, 0.5),
    ],
)
def test_context_use(turn, expected):
    """Given, or derived as the engine derives it."""
    assert context_use(Turn(session_id="c", **turn)) == expected


@pytest.mark.parametrize("turn", [{}, {"input_tokens": 5.0}, {"input_tokens": 5.0, "context_window_tokens": 0.0}])
def test_context_use_unknown(turn):
    """Without a window it is unknown."""
    assert math.isnan(context_use(Turn(session_id="c", **turn)))
