"""How long it takes to pop from a ring buffer."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from stabilitykit.sources.probes.drain import drain

__all__ = ["WatchedRing"]


class WatchedRing:
    """Stands in for a ring buffer: ``pop`` is watched, everything else is passed on.

    ``signals()`` gives ``ringbuf_pop_us``: of the pops since the last reading the one that 99 in 100 do not
    exceed (nearest rank, so of fewer than 100 the slowest). A thread that is put aside for 5 ms in one pop of
    10,000 does not show; a ring that is stalled does.

    Parameters
    ----------
    ring
        The buffer, such as ``collections.deque(maxlen=1024)``.
    method
        Name of the method that pops. What it raises on an empty ring is raised, and not counted.
    timer
        Nanoseconds of a steady clock.
    capacity
        Most pops held between two readings; of more the latest count.

    Examples
    --------
    >>> ticks = iter([0, 400, 1000, 9000])
    >>> ring = WatchedRing(deque("ab", maxlen=8), timer=lambda: next(ticks))
    >>> ring.pop(), ring.pop(), ring.signals()
    ('a', 'b', {'ringbuf_pop_us': 8.0})
    """

    def __init__(
        self,
        ring: Any,
        *,
        method: str = "popleft",
        timer: Callable[[], int] = time.perf_counter_ns,
        capacity: int = 4096,
    ) -> None:
        self._ring = ring
        self._take = getattr(ring, method)
        self._timer = timer
        self._elapsed_ns: deque[int] = deque(maxlen=capacity)
        for name in dir(ring):  # found at once, where __getattr__ would cost more than the watching
            if not name.startswith("_") and not hasattr(type(self), name):
                setattr(self, name, getattr(ring, name))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ring, name)

    def __len__(self) -> int:
        return len(self._ring)

    def pop(self) -> Any:
        """Pop the oldest item."""
        start = self._timer()
        item = self._take()
        self._elapsed_ns.append(self._timer() - start)
        return item

    def signals(self) -> dict[str, Any]:
        """Give what was seen since the last reading; nothing where nothing was popped."""
        taken = sorted(drain(self._elapsed_ns))
        return {"ringbuf_pop_us": taken[math.ceil(0.99 * len(taken)) - 1] / 1000} if taken else {}
