"""How many events the last second had: ten buckets of 100 ms."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

__all__ = ["RecentRate"]

_BUCKETS = 10
_PER_S = 10


class RecentRate:
    """Counts events of the last second, the bucket of 100 ms that is being filled among them.

    Parameters
    ----------
    clock
        Seconds that never go back. One that does starts the second afresh.

    Examples
    --------
    >>> now = 5.0
    >>> rate = RecentRate(clock=lambda: now)
    >>> rate.add(), rate.add(), rate.per_s()
    (None, None, 2.0)
    >>> now = 6.0
    >>> rate.per_s()
    0.0
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counts = [0] * _BUCKETS
        self._tick = int(clock() * _PER_S)

    def add(self) -> None:
        """Count one event now."""
        with self._lock:
            self._advance()
            self._counts[self._tick % _BUCKETS] += 1

    def per_s(self) -> float:
        """Give the number of events in the last second."""
        with self._lock:
            self._advance()
            return float(sum(self._counts))

    def _advance(self) -> None:
        tick = int(self._clock() * _PER_S)
        passed = tick - self._tick
        if passed == 0:
            return
        if passed < 0 or passed >= _BUCKETS:
            self._counts = [0] * _BUCKETS
        else:
            for old in range(self._tick + 1, tick + 1):
                self._counts[old % _BUCKETS] = 0
        self._tick = tick
