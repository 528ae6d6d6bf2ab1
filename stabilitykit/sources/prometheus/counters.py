"""Counters between two scrapes of one owner: increases over restarts, and a count that never falls."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["Counters"]


class Counters:
    """The counters of one owner as its last page had them.

    Parameters
    ----------
    is_from_start
        Take the first page as the increase since the server started, without a time.

    A counter that is smaller than before was reset by a restart; like Prometheus' ``rate`` we take its whole value as
    the increase, because what was counted between the last page and the restart is lost.

    Examples
    --------
    >>> counters = Counters()
    >>> counters.move({"requests": 10.0}, 5.0)
    >>> counters.move({"requests": 4.0}, 7.0)
    >>> counters.increase("requests"), counters.total("requests"), counters.elapsed_s
    (4.0, 14.0, 2.0)
    """

    def __init__(self, *, is_from_start: bool = False) -> None:
        self._is_first = is_from_start
        self._now: Mapping[str, float] = {}
        self._before: Mapping[str, float] = {}
        self._last: dict[str, float] = {}  # as last seen, on whichever page: a page may leave a metric out
        self._lost: dict[str, float] = {}
        self._taken_s: float | None = None
        self.elapsed_s: float | None = None

    def move(self, values: Mapping[str, float], timestamp_s: float) -> None:
        """Take a page's values.

        Parameters
        ----------
        values
            By metric; there are no more than the table knows.
        timestamp_s
            When they were read. A time that is not later than the last starts afresh.
        """
        self._before, self._now = self._now, values
        if self._is_first:
            self._before, self._is_first = dict.fromkeys(values, 0.0), False
        self.elapsed_s = None if self._taken_s is None else timestamp_s - self._taken_s
        self._taken_s = timestamp_s
        if self.elapsed_s is not None and self.elapsed_s <= 0.0:
            self._before, self._last, self.elapsed_s = {}, {}, None
        for metric, value in values.items():
            last = self._last.get(metric, 0.0)
            if value < last:
                self._lost[metric] = self._lost.get(metric, 0.0) + last
            self._last[metric] = value

    def increase(self, metric: str) -> float | None:
        """Give how much was counted since the page before; ``None`` without one."""
        now, before = self._now.get(metric), self._before.get(metric)
        if now is None or before is None:
            return None
        return now - before if now >= before else now

    def total(self, metric: str) -> float | None:
        """Give the count of all lives of the server that were seen."""
        now = self._now.get(metric)
        return None if now is None else now + self._lost.get(metric, 0.0)
