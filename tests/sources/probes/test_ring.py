from __future__ import annotations

from collections import deque

import pytest

from stabilitykit.sources.probes import WatchedRing


def ticking(*lengths_ns):
    """Give a timer for pops that take so long, one after the other."""
    ticks = [tick for ns in lengths_ns for tick in (0, ns)]
    found = iter(ticks)
    return lambda: next(found)


def test_ninety_nine_in_a_hundred():
    """Of 100 pops the second slowest is given, of fewer the slowest; then nothing."""
    ring = WatchedRing(deque(range(103), maxlen=128), timer=ticking(*range(1000, 100_000, 1000), 900_000, 5000, 1000))
    assert [ring.pop() for _ in range(100)] == list(range(100))
    assert ring.signals() == {"ringbuf_pop_us": 99.0}
    assert [ring.pop(), ring.pop()] == [100, 101]
    assert ring.signals() == {"ringbuf_pop_us": 5.0}
    assert ring.signals() == {}


def test_an_empty_ring_is_not_counted():
    """What the ring raises is raised, and no time is kept."""
    ring = WatchedRing(deque(maxlen=4))
    with pytest.raises(IndexError):
        ring.pop()
    assert ring.signals() == {}


def test_the_rest_is_passed_on():
    """Appending, length and attributes are the ring's own; another method may be the one that pops."""
    ring = WatchedRing(deque(maxlen=2), method="pop")
    for item in "abc":
        ring.append(item)
    assert (len(ring), ring.maxlen, ring.pop()) == (2, 2, "c")
    with pytest.raises(AttributeError):
        ring.no_such_thing  # noqa: B018
