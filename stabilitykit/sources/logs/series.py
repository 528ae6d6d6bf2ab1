"""Lines to samples: what a status line measures, and how often each behaviour was seen of late."""

from __future__ import annotations

from collections import deque

import attrs

from stabilitykit.sample import Sample
from stabilitykit.sources.logs.matcher import Line
from stabilitykit.sources.logs.stamps import time_of
from stabilitykit.sources.logs.vocabulary import BEHAVIOURS, count_signal
from stabilitykit.turn import MISSING

__all__ = ["Series"]

_TICK = 1e-3
"""Lines of the same second are samples of their own, this far apart: an engine takes no two at one time."""
_KEPT = 100_000


@attrs.define
class Series:
    """The samples of one log.

    Parameters
    ----------
    replica
        Whose log it is.
    window_s
        Lines of a behaviour are counted over this many seconds; without stamps, over the whole log.
    min_confidence
        A find below it is not counted.

    Examples
    --------
    >>> from stabilitykit.sources.logs import Block, Matcher, shipped_templates
    >>> line = b"[x] Decode batch. #running-req: 36, #token: 958017, token usage: 0.96, #queue-req: 4"
    >>> (found,) = Matcher(shipped_templates()).scan(Block(1, line))
    >>> sample = Series("r1").take(found)
    >>> sample.signals["kv_usage_ratio"], sample.signals["waiting_requests"], sample.signals["log_oom_count"]
    (0.96, 4.0, 0.0)
    """

    replica: str | None = None
    window_s: float = 60.0
    min_confidence: float = 0.5
    _last: float | None = None
    _seen: dict[str, deque[float]] = attrs.field(factory=dict)

    def take(self, line: Line) -> Sample | None:
        """Give the sample of a line, ``None`` when it neither measures nor reports anything."""
        at = self._moment(line.text)
        signals = {name: found.fields[name] for found in line.found for name in found.template.signals
                   if name in found.fields}  # fmt: skip
        reported = {b for found in line.found if found.confidence >= self.min_confidence for b in found.behaviours}
        if not signals and not reported:
            return None
        for behaviour in reported:
            self._seen.setdefault(behaviour, deque(maxlen=_KEPT)).append(0.0 if at is None else at)
        counts = {count_signal(name): self._count(name, at) for name in BEHAVIOURS}
        return Sample(replica=self.replica, timestamp_s=MISSING if at is None else at, signals={**counts, **signals})

    def _moment(self, text: bytes) -> float | None:
        said = time_of(text)
        if said is None:
            return None if self._last is None else self._after(self._last)
        # A clock that was set back does not turn time back.
        return self._after(said)

    def _after(self, said: float) -> float:
        self._last = said if self._last is None else max(said, self._last + _TICK)
        return self._last

    def _count(self, behaviour: str, at: float | None) -> float:
        times = self._seen.get(behaviour)
        if not times:
            return 0.0
        while at is not None and times and times[0] < at - self.window_s:
            times.popleft()
        return float(len(times))
