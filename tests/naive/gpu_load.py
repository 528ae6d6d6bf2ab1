"""The GPU's load, slow and obvious: periods as lists of samples, and an automaton over their verdicts."""

from __future__ import annotations

import statistics
from typing import Any

from tests.naive.kernel_durations import percentile

__all__ = ["GpuLoadTwin", "score_of"]

SENSORS = ("memory", "sm", "temperature")


def score_of(memory: float | None, sm: float | None, celsius: float | None) -> float:
    """Give the score of B2.3 (percent, percent, C); what is missing leaves its weight to the others."""
    terms = []
    if memory is not None:
        terms.append((0.4, memory))
    if sm is not None:
        terms.append((0.35, sm))
    if celsius is not None:
        weight = 0.8 if celsius <= 70 else min(1.5, 0.8 + 0.12 * (celsius - 70))
        terms.append((0.25, max(celsius, 0.0) * weight))
    return sum(a * b for a, b in terms) / sum(a for a, _ in terms)


class GpuLoadTwin:
    """Keeps all closed periods, each with a median a sensor or None."""

    def __init__(self, use: Any) -> None:
        self.settings = getattr(use, "settings", use)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.start: float | None = None
        self.running: list[dict[str, float | None]] = []
        self.periods: list[dict[str, float | None]] = []
        self.scores: list[float] = []
        self.over = self.hot = self.calm = 0
        self.said: dict[str, float | None] | None = None
        self.soft = self.hard = False

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Take one sample."""
        names = (
            *("score", "is_soft", "is_hard", "is_hot", "is_partial", "dynamic_threshold"),
            "temperature_c",
            "limit",
        )
        sample = {name: inputs.get(name) for name in SENSORS}
        if all(value is None for value in sample.values()):
            return dict.fromkeys(names)
        now, period = inputs.get("time"), self.settings["period"]
        if now is not None and self.start is not None:
            passed = (now - self.start) / period
            if passed < 0 or passed >= 13:
                self.reset()
            elif passed >= 1:
                self._close()
                self.start += int(passed) * period
        if now is not None and self.start is None:
            self.start = now
        self.running.append(sample)
        if now is None:
            self._close()
            self.start = None
        return dict(self.said) if self.said else dict.fromkeys(names)

    def _close(self) -> None:
        period: dict[str, float | None] = {}
        for name in SENSORS:
            values = [s[name] for s in self.running if s[name] is not None][-32:]
            period[name] = statistics.median(values) if values else None  # type: ignore[type-var]
        self.running = []
        self.periods.append(period)
        window = self.periods[-12:]
        used: list[float | None] = []
        for name, percent in zip(SENSORS, (90, 85, 100), strict=True):
            values = [p[name] for p in window if p[name] is not None]
            used.append(None if period[name] is None else percentile(values, percent))  # type: ignore[arg-type]
        memory, sm = (None if u is None else 100 * u for u in used[:2])
        score = score_of(memory, sm, used[2])
        self._judge(score, period["temperature"])
        past = self.scores[-60:]
        celsius = period["temperature"]
        self.said = {
            "score": score,
            "is_soft": float(self.soft),
            "is_hard": float(self.hard),
            "is_hot": None if celsius is None else float(self.hot >= 2),
            "is_partial": float(None in used),
            "temperature_c": celsius,
            "limit": self.settings["limit"],
            "dynamic_threshold": 1.1 * percentile(past, 90) if len(self.scores) >= 12 else None,
        }
        self.scores.append(score)

    def _judge(self, score: float, celsius: float | None) -> None:
        limit = self.settings["limit"]
        self.over = self.over + 1 if score > limit else 0
        is_hot = celsius is not None and celsius >= self.settings["hot"]
        if celsius is not None:
            self.hot = self.hot + 1 if is_hot else 0
        self.calm = self.calm + 1 if score < limit - 5 and not is_hot else 0
        if self.calm >= self.settings["recover"]:
            self.soft = self.hard = False
        self.soft = self.soft or self.over >= self.settings["soft"]
        self.hard = self.hard or self.over >= self.settings["hard"] or (celsius is not None and self.hot >= 2)
