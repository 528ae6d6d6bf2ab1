"""When were answers slow, and how slow: a joint heat map of token gaps over time, joined from stamps of requests.

A host stamps four events of a request with a monotonic clock in nanoseconds: ``sent``, ``first`` (the first token),
``token`` (each further one), ``end``. They may come late, twice or out of order, from any number of requests at once.

Windows of 100 ms slide by 50 ms, so each event belongs to two of them; a gap is counted in 5 ms bins, the last one
open, at the time of its later token (formulas A2.3). Counts are kept by hop of 50 ms, of the newest hops only; a window
is the sum of two hops. Memory is bounded whatever comes: hops by ``hops``, requests by ``open_requests``, the stamps of
a request that wait for their order by ``reorder``.
"""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict
from collections.abc import Hashable
from typing import Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from stabilitykit.errors import UsageError

__all__ = ["EVENTS", "HOP_NS", "HeatMap", "LatencyHeat"]

Event = Literal["sent", "first", "token", "end"]
EVENTS: tuple[Event, ...] = ("sent", "first", "token", "end")
HOP_NS = 50_000_000
"""Half a window: windows of 100 ms slide by it."""
BIN_NS = 5_000_000


@attrs.frozen(eq=False)
class HeatMap:
    """What was seen, by window of 100 ms.

    Parameters
    ----------
    start_ns
        When each window begins, i64[windows], in steps of 50 ms; the windows overlap by half.
    gaps
        Gaps between tokens by window and bin of 5 ms, i64[windows, bins]; the last bin is open.
    ttft_ms, rt_ms
        Mean time to first token and mean response time of what ended in each window, f64[windows]; NaN: none did.
    """

    start_ns: NDArray[np.int64]
    gaps: NDArray[np.int64]
    ttft_ms: NDArray[np.float64]
    rt_ms: NDArray[np.float64]


@attrs.define
class _Request:
    """Stamps of one request, in ns: those of tokens that may still change places, and the last that may not."""

    sent: int | None = None
    first: int | None = None
    last: int | None = None
    waiting: list[int] = attrs.field(factory=list)


class LatencyHeat:
    """Joins events by request and counts them.

    Parameters
    ----------
    bins
        Bins of 5 ms, the open one included.
    hops
        Newest hops of 50 ms that are kept; 1,200 are a minute.
    open_requests
        Requests without an end that are kept; the one that was silent for longest makes room.
    reorder
        Token stamps of a request that wait for earlier ones.

    Attributes
    ----------
    duplicates, late, unknown, dropped
        Events that repeated a stamp; that came after their place was counted, for an ended request, or for a hop no
        longer kept; durations that were negative; requests that had to make room.

    Examples
    --------
    Two tokens 12 ms and 3 ms after the one before, stamped out of order:

    >>> from stabilitykit.sources.latency_heat import LatencyHeat
    >>> heat = LatencyHeat(bins=4)
    >>> for event, ms in [("sent", 0), ("first", 40), ("token", 55), ("token", 52), ("end", 56)]:
    ...     heat.add("request-1", event, ms * 1_000_000)
    >>> heat.map().gaps.tolist()
    [[0, 0, 0, 0], [1, 0, 1, 0], [1, 0, 1, 0]]
    >>> heat.map().ttft_ms.tolist(), heat.map().start_ns.tolist()
    ([40.0, 40.0, nan], [-50000000, 0, 50000000])
    """

    def __init__(self, bins: int = 40, hops: int = 1200, open_requests: int = 4096, reorder: int = 8) -> None:
        if min(bins, hops, open_requests, reorder) < 1:
            raise UsageError("bins, hops, open_requests and reorder must be at least 1")
        self.duplicates = self.late = self.unknown = self.dropped = 0
        self._room, self._reorder, self._hops = open_requests, reorder, hops
        self._gaps = np.zeros((hops, bins), np.int64)
        self._times = np.zeros((hops, 2, 2), np.int64)  # TTFT and RT: how many, sum in ns
        self._newest: int | None = None
        self._oldest = 0
        self._open: OrderedDict[Hashable, _Request] = OrderedDict()
        self._ended: OrderedDict[Hashable, None] = OrderedDict()

    def add(self, request: Hashable, event: Event, at_ns: int) -> None:
        """Take one event.

        Parameters
        ----------
        request
            What joins the events of a request.
        event
            ``sent``, ``first``, ``token`` or ``end``.
        at_ns
            When, in ns of one monotonic clock.

        Raises
        ------
        UsageError
            Another event.
        """
        if event not in EVENTS:
            raise UsageError(f"event must be one of {', '.join(EVENTS)}")
        if request in self._ended:
            self.late += 1
            return
        state = self._open.pop(request, None) or self._admit()
        self._open[request] = state
        if event == "sent":
            self.duplicates += state.sent is not None
            state.sent = at_ns if state.sent is None else state.sent
        elif event == "end":
            self._finish(request, state, at_ns)
        else:
            self._token(state, at_ns)

    def _admit(self) -> _Request:
        while len(self._open) >= self._room:
            _, silent = self._open.popitem(last=False)
            self._flush(silent, 0)
            self.dropped += 1
        return _Request()

    def _token(self, state: _Request, at_ns: int) -> None:
        """Put a token's stamp in its place, and count the oldest when too many wait."""
        if at_ns in state.waiting or at_ns == state.last:
            self.duplicates += 1
        elif state.last is not None and at_ns < state.last:
            self.late += 1
        else:
            insort(state.waiting, at_ns)
            self._flush(state, self._reorder)

    def _flush(self, state: _Request, keep: int) -> None:
        """Count gaps, oldest first, until ``keep`` stamps wait."""
        while len(state.waiting) > keep:
            at_ns = state.waiting.pop(0)
            if state.last is None:
                state.first = at_ns
            elif self._has_hop(at_ns):
                bins = self._gaps.shape[1]
                self._gaps[at_ns // HOP_NS % self._hops, min((at_ns - state.last) // BIN_NS, bins - 1)] += 1
            state.last = at_ns

    def _finish(self, request: Hashable, state: _Request, at_ns: int) -> None:
        """Count what is left of a request, and remember for a while that it ended."""
        self._flush(state, 0)
        del self._open[request]
        self._ended[request] = None
        if len(self._ended) > self._room:
            self._ended.popitem(last=False)
        for place, until in enumerate((state.first, at_ns)):
            if state.sent is None or until is None:
                continue
            if until < state.sent:
                self.unknown += 1
            elif self._has_hop(until):
                self._times[until // HOP_NS % self._hops, place] += (1, until - state.sent)

    def _has_hop(self, at_ns: int) -> bool:
        """Make room for a hop that is newer than all; tell whether this one is kept."""
        hop = at_ns // HOP_NS
        if self._newest is None:
            self._newest = self._oldest = hop
        elif hop <= self._newest - self._hops:
            self.late += 1
            return False
        for fresh in range(max(self._newest + 1, hop - self._hops + 1), hop + 1):
            self._gaps[fresh % self._hops] = 0
            self._times[fresh % self._hops] = 0
        self._newest = max(self._newest, hop)
        self._oldest = max(min(self._oldest, hop), self._newest - self._hops + 1)
        return True

    def map(self) -> HeatMap:
        """Give the windows that hold anything that is kept; requests still open count as far as their order is sure."""
        if self._newest is None:
            empty = np.zeros(0)
            return HeatMap(np.zeros(0, np.int64), np.zeros((0, self._gaps.shape[1]), np.int64), empty, empty)
        kept = np.arange(self._oldest, self._newest + 1)
        gaps, times = self._gaps[kept % self._hops], self._times[kept % self._hops]
        count, total = np.moveaxis(_windows(times), 1, 0).transpose(2, 0, 1)
        mean = np.divide(total / 1e6, count, out=np.full(count.shape, np.nan), where=count > 0)
        return HeatMap((np.append(self._oldest - 1, kept)) * HOP_NS, _windows(gaps), mean[0], mean[1])


def _windows(hops: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum each hop with the next: window w covers hops w and w + 1, the first begins one hop early."""
    windows = np.zeros((len(hops) + 1, *hops.shape[1:]), np.int64)
    windows[1:] += hops
    windows[:-1] += hops
    return windows
