from __future__ import annotations

import asyncio
import contextlib
import queue

import pytest

from stabilitykit.sources.probes import WatchedQueue


class Clock:
    """A clock that is set by hand, in seconds; each look at the timer takes 1 us."""

    def __init__(self):
        self.now, self.ns = 10.0, 0

    def __call__(self):
        """Give the time."""
        return self.now

    def timer(self):
        """Give nanoseconds."""
        self.ns += 1000
        return self.ns


def watched(plain, **more):
    """Watch a queue with a clock of its own."""
    clock = Clock()
    return WatchedQueue(plain, clock=clock, timer=clock.timer, **more), clock


def fill(inbox, count):
    """Put items until some were put or refused."""
    for item in range(count):
        with contextlib.suppress(queue.Full, asyncio.QueueFull):
            inbox.put_nowait(item)


@pytest.mark.parametrize("make", [queue.Queue, queue.LifoQueue, queue.PriorityQueue, asyncio.Queue])
def test_counts_by_slot(make):
    """Every put is counted where it found the queue, refused ones in the last slot; and the rate decays."""
    inbox, clock = watched(make(3))
    fill(inbox, 5)
    seen = inbox.signals()
    assert seen["queue_full_per_s"] == 2.0
    assert seen["queue_occupancy"].tolist() == [1, 1, 1, 2]
    assert seen["queue_occupancy"].dtype == "int64"
    clock.now += 1.0
    assert inbox.signals() == {"queue_full_per_s": 0.0}


def test_many_places_share_the_slots():
    """1,000 places in 8 slots: the last slot is for the full queue alone."""
    inbox, _ = watched(queue.Queue(1000), slots=8)
    fill(inbox, 1005)
    occupancy = inbox.signals()["queue_occupancy"].tolist()
    assert len(occupancy) == 8
    assert occupancy[-1] == 5
    assert sum(occupancy) == 1005
    assert max(occupancy[:-1]) - min(occupancy[:-1]) <= 1


def test_receiving_is_timed_where_something_was_there():
    """Getting an item takes one tick of the clock; waiting on an empty queue is not counted."""
    inbox, _ = watched(queue.Queue(4))
    fill(inbox, 2)
    assert (inbox.get(), inbox.get_nowait()) == (0, 1)
    assert inbox.signals()["queue_recv_ms"] == 0.001
    with pytest.raises(queue.Empty):
        inbox.get(timeout=0.001)
    with pytest.raises(queue.Empty):
        inbox.get_nowait()
    assert "queue_recv_ms" not in inbox.signals()


def test_a_put_that_has_to_wait_found_no_room():
    """A blocking put into a full queue counts like a refused one; `block=False` is `put_nowait`."""
    inbox, _ = watched(queue.Queue(1))
    inbox.put("a")
    with pytest.raises(queue.Full):
        inbox.put("b", timeout=0.001)
    with pytest.raises(queue.Full):
        inbox.put("b", block=False)
    assert inbox.signals()["queue_full_per_s"] == 2.0


def test_an_unbounded_queue_is_never_full():
    """It has neither a rate nor slots."""
    inbox, _ = watched(queue.Queue())
    fill(inbox, 100)
    assert inbox.signals() == {}


def test_the_rest_is_passed_on():
    """Everything else is the queue's own."""
    inbox, _ = watched(queue.Queue(2))
    inbox.put(1)
    assert (inbox.qsize(), inbox.empty(), inbox.full(), inbox.maxsize) == (1, False, False, 2)
    inbox.get()
    inbox.task_done()
    inbox.join()
    with pytest.raises(AttributeError):
        inbox.no_such_thing  # noqa: B018


def test_asyncio_put_and_get():
    """Both are awaited; an item that was there is timed, one that is waited for is not."""
    inbox, _ = watched(asyncio.Queue(1))

    async def run():
        await inbox.put("a")
        late = asyncio.create_task(inbox.put("b"))
        await asyncio.wait([late], timeout=0)
        got = [await inbox.get(), await inbox.get()]
        waiting = asyncio.create_task(inbox.get())
        await asyncio.wait([waiting], timeout=0)
        inbox.put_nowait("c")
        return [*got, await waiting]

    assert asyncio.run(run()) == ["a", "b", "c"]
    seen = inbox.signals()
    assert seen["queue_full_per_s"] == 1.0
    assert seen["queue_occupancy"].tolist() == [2, 1]
    assert seen["queue_recv_ms"] > 0
