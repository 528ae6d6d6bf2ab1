from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.sources.probes import RecentRate


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now=100.0):
        self.now = now

    def __call__(self):
        """Give the time."""
        return self.now


@given(st.lists(st.tuples(st.integers(0, 14), st.booleans()), max_size=60))
def test_counts_the_last_ten_buckets(steps):
    """At any time the rate is the number of events in this bucket of 100 ms and the nine before it."""
    clock, events, tick = Clock(), [], 1000
    rate = RecentRate(clock)
    for step, is_event in steps:
        tick += step
        clock.now = tick / 10 + 0.05
        if is_event:
            rate.add()
            events.append(tick)
        assert rate.per_s() == sum(tick - 10 < at <= tick for at in events)


def test_a_clock_that_goes_back_starts_afresh():
    """The second before the step back is not counted, what comes after it is."""
    clock = Clock()
    rate = RecentRate(clock)
    rate.add()
    clock.now = 50.0
    assert rate.per_s() == 0.0
    rate.add()
    assert rate.per_s() == 1.0
