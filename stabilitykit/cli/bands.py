"""The bands of health: what is watched, from which value on it is a warning or a risk, and why there.

Bands are half-open as in A1.2: below the first bound healthy, up to the second a warning with both
bounds in it, beyond it a risk. Nothing at all (0) is healthy everywhere but in a hit ratio. The bounds are those of
the packs that call them, so they cite what the packs cite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import attrs

from stabilitykit.detectors.baseline import BASELINE
from stabilitykit.detectors.trace import settings_of
from stabilitykit.kernels.ewma import COUNT, MEAN, ewma_update
from stabilitykit.rules.pack import ParamValue
from stabilitykit.sample import Sample
from stabilitykit.turn import Turn, is_missing

__all__ = ["INDICATORS", "PACKS", "Band", "Indicator", "Params", "Seen", "Watched", "watch"]

Band = Literal["healthy", "warning", "risk", "unknown"]
Params = Mapping[str, ParamValue]
PACKS = ("vllm", "limits")
"""Shipped packs whose params the bounds are: `vllm` extends `chat`, and with it `latency` and `kv-cache`."""
_ALPHA = settings_of(BASELINE)["alpha"]


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
        The bounds: a param's name, or a number. Of a ``floor`` they are lower bounds.
    kind
        ``mean``: the weighted mean of the values. ``growth``: last value - first. ``floor``: mean, and less is worse.
    over
        A signal of the same sample to divide by, at least 1.
    """

    title: str
    signals: tuple[str, ...]
    unit: str
    warning: str | float
    risk: str | float
    kind: Literal["mean", "growth", "floor"] = "mean"
    over: str = ""

    def bounds(self, params: Params) -> tuple[float, float]:
        """Give both bounds."""
        warning, risk = (float(params[b].value) if isinstance(b, str) else b for b in (self.warning, self.risk))
        return warning, risk

    def source(self, params: Params) -> str:
        """Say where the bounds come from."""
        return "; ".join(f"{b}: {params[b].doc}" for b in (self.warning, self.risk) if isinstance(b, str))

    def band(self, value: float | None, params: Params) -> Band:
        """Give the band of a value."""
        warning, risk = self.bounds(params)
        if value is None:
            return "unknown"
        if self.kind == "floor":
            return "risk" if value < risk else "warning" if value < warning else "healthy"
        if value < warning or value == 0.0:
            return "healthy"
        return "risk" if value > risk else "warning"


INDICATORS: tuple[Indicator, ...] = (
    Indicator("KV fragmentation", ("kv_fragmentation_ratio",), "%", "fragmentation_healthy", "fragmentation_risk"),
    Indicator("prefill", ("prefill_ms", "mean_prefill_ms"), "ms", "prefill_healthy", "prefill_risk"),
    # What kv_collapse cites: the rate was steady from 91 % on, which is full, until it collapsed (data/README).
    Indicator("KV usage", ("kv_usage_ratio",), "%", 0.91, "kv_collapse"),
    Indicator("preemptions", ("preemptions_count",), "count", "preemptions", math.inf, "growth"),
    Indicator("waiting / running", ("waiting_requests",), "%", 0.0, "queue_share", over="running_requests"),
    Indicator("prefix hits", ("kv_hit_ratio", "prefix_hit_ratio"), "%", "kv_hit_usual", -math.inf, "floor"),
)


@attrs.define
class Watched:
    """What was seen of one indicator at one replica.

    Attributes
    ----------
    signal
        The signal it came from.
    greatest, least
        Of its values.
    first, last
        The outermost values.
    """

    signal: str
    greatest: float = -math.inf
    least: float = math.inf
    first: float = math.nan
    last: float = math.nan
    _statistics: list[float] = attrs.field(factory=lambda: [0.0] * BASELINE.layout({}).f8)

    @property
    def count(self) -> int:
        """How many values there were."""
        return int(self._statistics[COUNT])

    @property
    def mean(self) -> float:
        """Their mean, which forgets as that of the detector ``baseline`` (A1.2 wants a weighted mean)."""
        return self._statistics[MEAN]

    def add(self, value: float) -> None:
        """Take one value in."""
        ewma_update(self._statistics, value, _ALPHA)
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
