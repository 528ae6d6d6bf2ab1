from __future__ import annotations

import asyncio
import threading

import pytest

from stabilitykit.sources.probes import Transitions, timed_transition


def clock(*ticks):
    """Give a timer that reads these nanoseconds one after the other."""
    found = iter(ticks)
    return lambda: next(found)


def test_worst_since_the_last_reading():
    """The slowest transition is given once, then there is nothing."""
    spans = Transitions()
    timer = clock(0, 2_000, 10_000, 19_500, 20_000, 21_000)
    for _ in range(3):
        with timed_transition(spans, timer=timer):
            pass
    assert spans.signals() == {"state_transition_us": 9.5}
    assert spans.signals() == {}


def test_every_one_can_be_had():
    """The transitions come out in their order."""
    spans = Transitions()
    spans.add_ns(1500)
    spans.add_ns(500)
    assert spans.drain_us() == [1.5, 0.5]


def test_a_signal_of_a_pack():
    """The name of the signal is the caller's."""
    spans = Transitions("slowest_transition_us")
    with timed_transition(spans, timer=clock(0, 4000)) as transition:
        pass
    assert transition.signals() == spans.signals() == {"slowest_transition_us": 4.0}


def test_a_transition_that_raises_counts():
    """In a block and in a function the exception goes on and the time is kept."""
    spans = Transitions()
    with pytest.raises(KeyError), timed_transition(spans, timer=clock(0, 1000)):
        raise KeyError

    @timed_transition(spans, timer=clock(0, 2000))
    def fails():
        raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert spans.drain_us() == [1.0, 2.0]


def test_decorated_functions_keep_what_they_are():
    """Arguments, result, name; a coroutine function stays one and is timed until it is done."""
    spans = Transitions()

    @timed_transition(spans, timer=clock(0, 1000))
    def double(x, *, plus=0):
        """Double it."""
        return 2 * x + plus

    @timed_transition(spans, timer=clock(0, 3000))
    async def later(x):
        return x

    assert (double(2, plus=1), double.__name__, double.__doc__) == (5, "double", "Double it.")
    assert asyncio.run(later(7)) == 7
    assert spans.drain_us() == [1.0, 3.0]


def test_a_function_needs_a_place_for_its_times():
    """Without Transitions nobody could read them."""
    with pytest.raises(TypeError, match="Transitions"):
        timed_transition()(print)


def test_threads_lose_none():
    """What many threads add arrives, up to the capacity."""
    spans = Transitions(capacity=10_000)
    step = timed_transition(spans)(lambda: None)
    team = [threading.Thread(target=lambda: [step() for _ in range(1000)]) for _ in range(8)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    assert len(spans.drain_us()) == 8000


def test_memory_is_bounded():
    """Of more than the capacity the latest count."""
    spans = Transitions(capacity=3)
    for ns in (9000, 1000, 2000, 3000):
        spans.add_ns(ns)
    assert spans.signals() == {"state_transition_us": 3.0}
