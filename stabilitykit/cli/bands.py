"""The bands of health: what is watched, from which value on it is a warning or a risk, and why there.

Bands are half-open as in A1.2: below the first bound healthy, up to the second a warning with both
bounds in it, beyond it a risk. Nothing at all (0) is healthy everywhere but in a hit ratio.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import attrs

from stabilitykit.sample import Sample
from stabilitykit.turn import Turn, is_missing

__all__ = ["INDICATORS", "Band", "Indicator", "Seen", "Watched", "watch"]

Band = Literal["healthy", "warning", "risk", "unknown"]
_ALPHA = 0.05
"""Weight of a new value once 1/alpha were seen, as of the detector `baseline`."""


@attrs.frozen
class Indicator:
    """One thing that is watched.

    Parameters
    ----------
    title
        Its name in the table.
    signals
        Signals that tell it, the first that is there is taken.
    unit
        ``%``, ``ms`` or ``count``.
    warning, risk
        The bounds. Of a ``floor`` they are lower bounds.
    source
        Where the bounds come from.
    kind
        ``mean``: the weighted mean of the values. ``growth``: last value - first. ``floor``: mean, and less is worse.
    over
        A signal of the same sample to divide by, at least 1.
    """

    title: str
    signals: tuple[str, ...]
    unit: str
    warning: float
    risk: float
    source: str
    kind: Literal["mean", "growth", "floor"] = "mean"
    over: str = ""

    def band(self, value: float | None) -> Band:
        """Give the band of a value.

        >>> [INDICATORS[0].band(v) for v in (0.1499, 0.15, 0.4, 0.41, None)]
        ['healthy', 'warning', 'warning', 'risk', 'unknown']
        """
        if value is None:
            return "unknown"
        if self.kind == "floor":
            return "risk" if value < self.risk else "warning" if value < self.warning else "healthy"
        if value < self.warning or value == 0.0:
            return "healthy"
        return "risk" if value > self.risk else "warning"


INDICATORS: tuple[Indicator, ...] = (
    Indicator("KV fragmentation", ("kv_fragmentation_ratio",), "%", 0.15, 0.40, "A1.2"),
    Indicator("prefill", ("prefill_ms", "mean_prefill_ms"), "ms", 120.0, 350.0, "A1.2"),
    Indicator("KV usage", ("kv_usage_ratio",), "%", 0.91, 0.96, "data/README: the rate holds from 91 to 96 %"),
    Indicator("preemptions", ("preemptions_count",), "count", 0.0, math.inf, "pack latency: any", "growth"),
    Indicator(
        "waiting / running", ("waiting_requests",), "%", 0.0, 0.10, "pack latency: queue_share", over="running_requests"
    ),
    Indicator(
        "prefix hits",
        ("kv_hit_ratio", "prefix_hit_ratio"),
        "%",
        0.50,
        -math.inf,
        "pack kv-cache: kv_hit_usual",
        "floor",
    ),
)


@attrs.define
class Watched:
    """What was seen of one indicator at one replica.

    Attributes
    ----------
    signal
        The signal it came from.
    count, mean, greatest, least
        Of its values; the mean forgets as that of the detector ``baseline``.
    first, last
        The outermost values.
    """

    signal: str
    count: int = 0
    mean: float = 0.0
    greatest: float = -math.inf
    least: float = math.inf
    first: float = math.nan
    last: float = math.nan

    def add(self, value: float) -> None:
        """Take one value in."""
        self.count += 1
        self.mean += max(_ALPHA, 1.0 / self.count) * (value - self.mean)
        self.greatest, self.least = max(self.greatest, value), min(self.least, value)
        self.first = value if self.count == 1 else self.first
        self.last = value

    def value(self, indicator: Indicator) -> float | None:
        """Give the figure that is compared; a growth needs two values."""
        if indicator.kind == "growth":
            return self.last - self.first if self.count > 1 else None
        return self.mean


Seen = dict[str, dict[str, Watched]]
"""By replica, by the title of the indicator."""


def watch(seen: Seen, entry: Turn | Sample) -> None:
    """Take a turn or a sample into what was seen."""
    given = entry.signals if isinstance(entry, Sample) else _signals_of(entry)
    held = seen.setdefault(entry.replica or "", {})
    for indicator in INDICATORS:
        for signal in indicator.signals:
            value = _number(given, signal)
            over = _number(given, indicator.over) if indicator.over else 1.0
            if value is None or over is None:
                continue
            known = held.setdefault(indicator.title, Watched(signal))
            if known.signal == signal:
                known.add(value / max(1.0, over))
            break


def _number(given: Mapping[str, object], signal: str) -> float | None:
    value = given.get(signal)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0:
        return float(value)
    return None


def _signals_of(turn: Turn) -> dict[str, object]:
    names = {name for indicator in INDICATORS for name in (*indicator.signals, indicator.over) if name}
    found = {name: getattr(turn, name) for name in names if not is_missing(getattr(turn, name))}
    prompt, cached = turn.input_tokens, turn.cached_tokens
    if "kv_hit_ratio" not in found and prompt > 0 and cached >= 0:  # as the engine derives it; missing compares false
        found["kv_hit_ratio"] = min(1.0, cached / prompt)
    return found
