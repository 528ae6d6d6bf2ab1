"""A bounded queue and how full its producers find it."""

from __future__ import annotations

import asyncio
import queue
import statistics
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from stabilitykit.sources.probes.drain import drain
from stabilitykit.sources.probes.rate import RecentRate

__all__ = ["WatchedQueue"]


class WatchedQueue:
    """Stands in for a ``queue.Queue`` (or one of its kinds) or an ``asyncio.Queue``.

    ``put``, ``put_nowait``, ``get`` and ``get_nowait`` are those of the queue, watched; everything else is
    passed on. ``signals()`` gives, since the last reading,

    ``queue_full_per_s``
        Puts of the last second that found no room: refused ones, and those that had to wait for it.
    ``queue_recv_ms``
        Median time to receive an item *that was there*. Waiting on an empty queue is idleness and counts
        for nothing.
    ``queue_occupancy``
        How often a put found the queue how full: counts by slot, the first for empty, the last for full.

    Parameters
    ----------
    queue
        The queue. An unbounded one has neither fullness nor slots.
    slots
        Slots of ``queue_occupancy``; fewer where the queue holds fewer items.
    clock
        Seconds of a steady clock, for the rate.
    timer
        Nanoseconds of a steady clock, for the time to receive.
    capacity
        Most events held between two readings; of more the latest count.
    """

    def __init__(
        self,
        queue: queue.Queue[Any] | asyncio.Queue[Any],
        *,
        slots: int = 64,
        clock: Callable[[], float] = time.monotonic,
        timer: Callable[[], int] = time.perf_counter_ns,
        capacity: int = 4096,
    ) -> None:
        self._queue = queue
        self._room = max(0, queue.maxsize)
        self._slots = min(slots, self._room + 1)
        self._timer = timer
        self._refused = RecentRate(clock)
        self._found: deque[int] = deque(maxlen=capacity)
        self._waited_ns: deque[int] = deque(maxlen=capacity)
        # Its length without the lock that qsize() takes: a look, as good as any other a moment later.
        items: Any = getattr(queue, "queue", None)
        self._depth: Callable[[], int] = queue.qsize if items is None else items.__len__
        is_async = isinstance(queue, asyncio.Queue)
        self.put: Callable[..., Any] = self._put_async if is_async else self._put
        self.get: Callable[..., Any] = self._get_async if is_async else self._get

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def put_nowait(self, item: Any) -> None:
        """Put an item; raises the queue's own exception where there is no room."""
        self._found.append(self._depth())
        try:
            self._queue.put_nowait(item)
        except (queue.Full, asyncio.QueueFull):
            self._refused.add()
            raise

    def get_nowait(self) -> Any:
        """Get an item; raises the queue's own exception where there is none."""
        start = self._timer()
        item = self._queue.get_nowait()
        self._waited_ns.append(self._timer() - start)
        return item

    def _look(self) -> None:
        depth = self._depth()
        self._found.append(depth)
        if depth >= self._room > 0:
            self._refused.add()

    def _put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        if not block:
            return self.put_nowait(item)
        self._look()
        self._queue.put(item, True, timeout)  # type: ignore[call-arg]

    async def _put_async(self, item: Any) -> None:
        self._look()
        await self._queue.put(item)  # type: ignore[misc]

    def _get(self, block: bool = True, timeout: float | None = None) -> Any:
        if not self._depth():
            return self._queue.get(block, timeout)  # type: ignore[call-arg]
        start = self._timer()
        item = self._queue.get(block, timeout)  # type: ignore[call-arg]
        self._waited_ns.append(self._timer() - start)
        return item

    async def _get_async(self) -> Any:
        if not self._depth():
            return await self._queue.get()
        start = self._timer()
        item = await self._queue.get()
        self._waited_ns.append(self._timer() - start)
        return item

    def signals(self) -> dict[str, Any]:
        """Give what was seen since the last reading."""
        seen: dict[str, Any] = {}
        found, waited = drain(self._found), drain(self._waited_ns)
        if self._room:
            seen["queue_full_per_s"] = self._refused.per_s()
        if waited:
            seen["queue_recv_ms"] = statistics.median(waited) / 1e6
        if found and self._room:
            slots = np.minimum(found, self._room) * (self._slots - 1) // self._room
            seen["queue_occupancy"] = np.bincount(slots, minlength=self._slots).astype(np.int64)
        return seen
