"""The calibrated drift detector, slow and obvious: whole lists, one feature after the other."""

from __future__ import annotations

import math
import struct
from typing import Any

__all__ = ["DriftProbeTwin"]


def short(u: list[float]) -> list[float]:
    """Round to float32, as the detector keeps vectors."""
    return [struct.unpack("f", struct.pack("f", a))[0] for a in u]


def product(u: list[float], v: list[float]) -> float:
    """Sum of products."""
    return math.fsum(a * b for a, b in zip(u, v, strict=True))


def apart(u: list[float], v: list[float]) -> float:
    """Cosine distance; 1 where one has no direction."""
    size = math.sqrt(product(u, u) * product(v, v))
    return min(2.0, max(0.0, 1 - product(u, v) / size)) if size else 1.0


def log_tokens(count: float | None) -> float | None:
    """log(1 + tokens)."""
    return None if count is None else math.log(1 + count)


class DriftProbeTwin:
    """Keeps every usable vector of the conversation and the tokens of the last turn."""

    def __init__(self, use: Any) -> None:
        settings = getattr(use, "settings", use)
        self.dim = settings["dim"]
        self.model = {name: [float(a) for a in row] for name, row in settings["model"].arrays.items()}
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.directions: list[list[float]] = []
        self.exact: list[float] = []
        self.topic: list[float] = []
        self.length: float | None = None
        self.prompt: float | None = None
        self.answer: float | None = None
        self.message: float | None = None
        self.asked: float | None = None

    def _centred(self, value: Any) -> list[float] | None:
        u = [] if value is None else [float(a) for a in value]
        if len(u) != self.dim or not all(map(math.isfinite, u)) or not any(u):
            return None
        size = math.sqrt(product(u, u))
        z = [a / size - m for a, m in zip(u, self.model["centre"], strict=True)]
        return z if any(z) else None

    def _logit(self, z: list[float], message: float | None, asks: float | None) -> float:
        length = math.sqrt(product(z, z))
        near = [apart(z, d) for d in self.directions[-2:]]
        features = [
            near[-1],
            min(near),
            apart(z, self.topic),
            length,
            self.length,
            log_tokens(message),
            log_tokens(self.message),
            log_tokens(self.answer),
            asks,
            self.asked,
        ]
        total = self.model["bias"][0]
        for weight, mean, value in zip(self.model["features"], self.model["means"], features, strict=True):
            total += weight * (mean if value is None else value)
        if "product" in self.model:
            unit = [a / length for a in z]
            total += product(self.model["now"], unit) + product(self.model["before"], self.exact)
            total += math.fsum(
                w * a * b for w, a, b in zip(self.model["product"], unit, self.directions[-1], strict=True)
            )
        return total

    def _keep(self, z: list[float]) -> None:
        self.length = math.sqrt(product(z, z))
        self.exact = [a / self.length for a in z]
        old = self.topic or self.exact
        share = 0.7 if self.topic else 1.0
        self.topic = short([m + share * (a - m) for a, m in zip(self.exact, old, strict=True)])
        self.directions = [*self.directions, short(self.exact)]

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Weigh the features, then keep the vector and the tokens."""
        threshold = self.model["threshold"][0]
        found: dict[str, float | None] = {
            "is_drift": None,
            "probability": None,
            "threshold": threshold,
            "distance": None,
        }
        prompt, answer = inputs.get("prompt"), inputs.get("answer")
        questions = inputs.get("questions")
        asks = None if questions is None else float(questions > 0)
        message = None
        if prompt is not None and self.prompt is not None and self.answer is not None:
            grown = prompt - self.prompt - self.answer
            message = grown if grown >= 0 else None
        z = self._centred(inputs.get("input"))
        if z is not None and self.directions:
            logit = self._logit(z, message, asks)
            found["probability"] = 1 / (1 + math.exp(-max(-700.0, min(700.0, logit))))
            found["is_drift"] = float(logit > math.log(threshold / (1 - threshold)) + 1e-9)
            found["distance"] = min(apart(z, d) for d in self.directions[-2:])
        if z is not None:
            self._keep(z)
        if z is not None or prompt is not None:
            self.prompt, self.answer, self.message, self.asked = prompt, answer, message, asks
        return found
