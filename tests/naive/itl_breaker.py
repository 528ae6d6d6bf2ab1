"""The ITL breaker's detector, slow and obvious."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from tests.naive.baseline import BaselineTwin
from tests.naive.quantile import CellList

__all__ = ["ItlBreakerTwin"]


class ItlBreakerTwin:
    """Keeps the values that were not over, and forgets them after too long a freeze."""

    def __init__(self, use: Any) -> None:
        self.s = getattr(use, "settings", use)
        self.is_weighing = self.s["method"] == "shewhart_cusum"
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.frozen = 0
        self._start_afresh()

    def _start_afresh(self) -> None:
        self.cells = CellList(self.s["lowest_ms"], 16, 16, 1 << 15)
        self.mean = BaselineTwin({"alpha": self.s["alpha"], "warmup": self.s["warmup"]})
        self.sum = 0.0

    def _learn(self, value: float) -> None:
        if self.s["method"] == "ewma":
            self.mean.update({"input": value})
        else:
            self.cells.add(value)

    def _learned(self) -> tuple[float, float] | None:
        """Baseline and threshold from what was learned, None when there is none."""
        drift = 1 + self.s["drift_factor"]
        if self.s["method"] == "ewma" and self.mean.n >= self.s["warmup"] and self.mean.mean >= 1e-9:
            return self.mean.mean, self.mean.mean * drift
        if self.s["method"] in ("p90", "shewhart_cusum") and len(self.cells.cells) >= self.s["warmup"]:
            if self.cells.cells[(len(self.cells.cells) + 1) // 2 - 1] == (0, 0):
                return None
            median = self.cells.value(Fraction(1, 2))
            own = median * math.exp(min(1.5 * self._reach(), 20.0)) if self.is_weighing else self._p90() * 1.2
            return median, max(median * drift, own)
        return None

    def _p90(self) -> float:
        return self.cells.value(Fraction(9, 10))

    def _reach(self) -> float:
        """Logarithm of p90 over the median, wider while few values are known."""
        return math.log(self._p90() / self.cells.value(Fraction(1, 2))) * (1 + 8 / len(self.cells.cells))

    def _limit(self) -> float:
        return float(self.s["evidence"] * (1 + 20 / len(self.cells.cells)))

    def _weigh(self, value: float | None, median: float) -> float:
        """Add the log-likelihood ratio of two normal distributions of the logarithm; give sum / limit."""
        limit = self._limit()
        if value is not None:
            shift, spread = math.log(self.s["step"]), max(self._reach() / 1.2815515655446004, 0.2)
            gain = -1.0
            if value >= 1e-9:
                gain = (math.log(value / median) - shift / 2) * shift / (spread * spread)
            self.sum += min(max(gain, -1.0), 0.51 * limit)
            self.sum = min(max(self.sum, 0.0), 1.5 * limit)
        return self.sum / limit

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Compare and weigh, then learn what is not over."""
        value = inputs.get("input")
        if value is not None and abs(value) > 1e150:
            value = None
        learned = self._learned()
        static = self.s["baseline_ms"]
        base, bound = learned or (static, static * (1 + self.s["drift_factor"]))
        if base < 1e-9:
            base, bound = 0.0, 0.0
        guard = 1e-9 if learned else 0.0
        share = self._weigh(value, base) if learned and self.is_weighing else None
        over = bool(value is not None and base and (value > bound + bound * guard or (share or 0) > 1))
        out: dict[str, float | None] = {
            "is_over": float(over) if base and value is not None else None,
            "baseline_ms": base or None,
            "threshold_ms": bound if base else None,
            "over_ratio": value / bound if base and value is not None else None,
            "evidence_ratio": None if share is None else min(share, 1.5),
        }
        if value is not None and self.s["method"] != "static":
            self._remember(value, is_frozen=bool(over and learned))
        return out

    def _remember(self, value: float, is_frozen: bool) -> None:
        self.frozen = self.frozen + 1 if is_frozen else 0
        if self.frozen >= self.s["max_freeze"]:
            self._start_afresh()
            self.frozen = 0
        still_learned = 2 if self.is_weighing and len(self.cells.cells) >= 18 else 0
        if self.frozen <= still_learned:
            self._learn(value)
