"""The intent drift detector, slow and obvious."""

from __future__ import annotations

import math
from array import array
from typing import Any

__all__ = ["IntentDriftTwin"]


def norm(u: list[float]) -> float:
    """Length of a vector."""
    return math.sqrt(math.fsum(a * a for a in u))


class IntentDriftTwin:
    """Keeps whole vectors and lists of distances."""

    def __init__(self, use: Any) -> None:
        self.s = getattr(use, "settings", use)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.vectors: list[list[float]] = []
        self.topic: list[float] = []
        self.distances: list[float] = []
        self.window: list[float] = []
        n0, self.m = self.s["n0"], self.s["mu0"]
        self.n, self.m2 = float(n0), n0 * self.s["s0"] ** 2

    def _distance(self, value: Any) -> float | None:
        """Distance to the nearest of the last vectors; keeps this one."""
        u = [] if value is None else [float(a) for a in value]
        if len(u) != self.s["dim"] or not all(map(math.isfinite, u)) or not any(u):
            return None
        kept = [self.topic] if self.s["score"] == "topic" and self.vectors else self.vectors
        cosines = [
            math.fsum(a * b for a, b in zip(u, v, strict=True)) / (norm(u) * norm(v)) if any(v) else 0.0 for v in kept
        ]
        old = self.topic or [a / norm(u) for a in u]
        mean = [m + 0.5 * (a / norm(u) - m) for m, a in zip(old, u, strict=True)]
        self.topic = list(array("f", mean))  # as the detector keeps it
        self.vectors = [*self.vectors, u][-2 if self.s["score"] == "max2" else -1 :]
        return self._risen(min(2.0, max(0.0, 1 - max(cosines)))) if cosines else None

    def _risen(self, d: float) -> float:
        """The distance, or how far it is above the valley behind it."""
        self.distances.append(d)
        if self.s["score"] != "depth":
            return d
        valley = d
        for before in reversed(self.distances[:-1]):
            if before > valley:
                break
            valley = before
        return d - valley

    def _window_bound(self, floor: float) -> float | None:
        n = len(self.window)
        if n < 2:
            return None
        mean = math.fsum(self.window) / n
        deviation = math.sqrt(math.fsum((d - mean) ** 2 for d in self.window) / n)
        return mean + self.s["k"] * max(deviation, floor)

    def _push(self, d: float) -> None:
        self.window = [*self.window, d][-self.s["window"] :]

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Measure, compare, then learn."""
        d = self._distance(inputs.get("input"))
        method = self.s["method"]
        bound: float | None
        if method == "prior":
            bound = self.m + self.s["k"] * math.sqrt(self.m2 / self.n)
        elif method == "source_corrected":
            bound = self._window_bound(self.s["floor"])
        elif method == "fixed":
            bound = self.s["mu0"] + self.s["k"] * self.s["s0"]
        else:
            if d is not None:
                self._push(d)
            bound = self._window_bound(0.0)
        guard = 1e-9 if self.s["tie_guard"] else 0.0
        fires = d is not None and bound is not None and d > bound + guard * max(1.0, bound)
        if d is not None:
            self._learn(d, bound, fires)
        return {
            "is_drift": None if d is None or bound is None else float(fires),
            "distance": d,
            "threshold": bound,
        }

    def _learn(self, d: float, bound: float | None, fires: bool) -> None:
        if self.s["method"] == "prior":
            assert bound is not None
            d = min(d, bound)
            self.n += 1
            off = d - self.m
            self.m += off / self.n
            self.m2 += off * (d - self.m)
        elif self.s["method"] == "source_corrected":
            self._push(bound if fires and bound is not None else d)
