"""What a load came to, in figures: quantiles of times, tokens a second, share of the prompt served from the cache."""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from stabilitykit.cli.probe.client import Answer
from stabilitykit.kernels.hit_ratio import hit_ratio as share_of_cache
from stabilitykit.sample import Sample
from stabilitykit.signals import CATALOGUE
from stabilitykit.turn import Turn

__all__ = ["TIMES", "Figures", "hit_ratio", "nearest_rank"]

TIMES = ("ttft_ms", "itl_ms", "prefill_ms", "rt_ms")
"""Shown with their quantiles; ``itl_ms`` is every gap between tokens here, not the mean of a turn."""
_NUMBERS = tuple(s.name for s in CATALOGUE.values() if s.kind in ("number", "count"))


class Figures:
    """Collects while a load runs.

    Attributes
    ----------
    asked, answered
        Requests that came to an end, and those with a whole answer.
    errors
        How the others ended.
    faults
        Faults of streams.
    output_tokens
        Tokens of all answers.
    """

    def __init__(self) -> None:
        self.asked = self.answered = self.faults = 0
        self.errors: Counter[str] = Counter()
        self.output_tokens = self._input = self._cached = 0.0
        self._values: dict[str, array[float]] = defaultdict(lambda: array("d"))
        self._first_ns: int | None = None
        self._last_ns = 0

    def add(self, answer: Answer) -> None:
        """Take one answer in."""
        turn = answer.turn
        self.asked += 1
        self.answered += answer.is_answered
        self.faults += len(answer.faults)
        if not answer.is_answered:
            status = "" if math.isnan(turn.http_status) else f" (HTTP {turn.http_status:g})"
            self.errors[f"{turn.error or 'refused'}{status}"] += 1
        self._first_ns = answer.sent_ns if self._first_ns is None else min(self._first_ns, answer.sent_ns)
        self._last_ns = max(self._last_ns, answer.end_ns)
        for name in _NUMBERS:
            value = getattr(turn, name)
            if name != "itl_ms" and isinstance(value, int | float) and math.isfinite(value):
                self._values[name].append(value)
        self._values["itl_ms"].extend(answer.gaps_ms())
        if not math.isnan(turn.output_tokens):
            self.output_tokens += turn.output_tokens
        if (ratio := hit_ratio(turn)) is not None:
            self._input += turn.input_tokens
            self._cached += turn.cached_tokens
            self._values["kv_hit_ratio"].append(ratio)

    def add_sample(self, sample: Sample) -> None:
        """Take one scrape in."""
        for name, value in sample.signals.items():
            if isinstance(value, int | float) and math.isfinite(value):
                self._values[name].append(value)

    def values(self, signal: str) -> Sequence[float]:
        """Give every value of a signal, in the order in which they came."""
        return self._values.get(signal, array("d"))

    @property
    def seconds(self) -> float:
        """From the first request to the end of the last."""
        return 0.0 if self._first_ns is None else max(0.0, (self._last_ns - self._first_ns) / 1e9)

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens of all conversations together, each second."""
        return self.output_tokens / self.seconds if self.output_tokens and self.seconds else None

    @property
    def hit_ratio(self) -> float | None:
        """Cached tokens / prompt tokens, of all answers that tell both."""
        return self._cached / self._input if self._input else None

    def times(self) -> dict[str, Mapping[str, float]]:
        """Give the quantiles of each time that was seen."""
        return {name: _spread(sorted(self._values[name])) for name in TIMES if self._values[name]}

    def to_dict(self) -> dict[str, Any]:
        """Give everything as JSON values; what is not known is null."""
        return {
            "asked": self.asked,
            "answered": self.answered,
            "errors": dict(self.errors),
            "stream_faults": self.faults,
            "seconds": self.seconds,
            "output_tokens": self.output_tokens,
            "output_tokens_per_s": self.tokens_per_s,
            "cache_hit_ratio": self.hit_ratio,
            **self.times(),
        }


def hit_ratio(turn: Turn) -> float | None:
    """Give the share of a prompt that the cache served; ``None`` where the reply does not tell."""
    ratio = share_of_cache(turn.cached_tokens, turn.input_tokens)
    return None if math.isnan(ratio) else ratio


def nearest_rank(ordered: Sequence[float], share: float) -> float:
    """Give a quantile of sorted values: the least of them that so large a share does not exceed.

    References
    ----------
    .. [1] R. J. Hyndman, Y. Fan, "Sample quantiles in statistical packages", 1996, definition 1.

    Examples
    --------
    >>> nearest_rank([1.0, 2.0, 3.0, 4.0], 0.5), nearest_rank([1.0, 2.0, 3.0, 4.0], 0.99)
    (2.0, 4.0)
    """
    return ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]


def _spread(ordered: Sequence[float]) -> dict[str, float]:
    return {
        "p50": nearest_rank(ordered, 0.50),
        "p90": nearest_rank(ordered, 0.90),
        "p99": nearest_rank(ordered, 0.99),
        "mean": math.fsum(ordered) / len(ordered),
        "max": ordered[-1],
        "count": len(ordered),
    }
