"""Counts over restarts and over pages that leave a metric out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.sources.prometheus.counters import Counters


def moved(pages):
    """Give the counters after pages a second apart, and the total of each page."""
    counters, totals = Counters(), []
    for second, page in enumerate(pages):
        counters.move(page, float(second))
        totals.append(counters.total("requests"))
    return counters, totals


@pytest.mark.parametrize(
    ("values", "totals", "increase"),
    [
        ((10.0, None, 4.0), [10.0, None, 14.0], None),
        ((10.0, None, 12.0), [10.0, None, 12.0], None),
        ((10.0, None, None, 4.0, 6.0), [10.0, None, None, 14.0, 16.0], 2.0),
        ((10.0, 4.0, None, 3.0), [10.0, 14.0, None, 17.0], None),
    ],
)
def test_a_metric_that_a_page_leaves_out(values, totals, increase):
    """Its total goes on from where it was last seen; an increase needs the page before."""
    counters, found = moved({} if v is None else {"requests": v} for v in values)
    assert found == totals
    assert counters.increase("requests") == increase


@given(st.lists(st.none() | st.integers(0, 1_000).map(float), max_size=20))
def test_a_total_never_falls(values):
    """Whatever the pages leave out, and however often the server starts again."""
    _, totals = moved({} if v is None else {"requests": v} for v in values)
    seen = [total for total in totals if total is not None]
    assert seen == sorted(seen)


def test_a_time_that_is_not_later_starts_afresh():
    """A page from the past is no restart."""
    counters = Counters()
    counters.move({"requests": 10.0}, 5.0)
    counters.move({"requests": 4.0}, 5.0)
    assert (counters.total("requests"), counters.increase("requests"), counters.elapsed_s) == (4.0, None, None)
