"""Intents that are unclear and keep changing, slow and obvious: whole lists and textbook sums."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

__all__ = ["IntentChurnTwin"]


def softmax(logits: list[float]) -> list[float]:
    """Make probabilities."""
    top = max(logits)
    shares = [math.exp(a - top) for a in logits]
    return [a / math.fsum(shares) for a in shares]


class IntentChurnTwin:
    """Keeps the main intent and the entropy of every known turn."""

    def __init__(self, use: Any) -> None:
        self.s = getattr(use, "settings", use)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.classes = 0
        self.mains: list[int] = []
        self.ratios: list[float] = []

    def _probabilities(self, inputs: dict[str, Any]) -> list[float] | None:
        given = inputs.get("probs")
        if given is not None and len(given):
            p = [float(a) for a in given]
            if len(p) < 2 or not all(a >= 0 and math.isfinite(a) for a in p) or abs(math.fsum(p) - 1) > 0.01:
                return None
            return [a / math.fsum(p) for a in p]
        u = [] if inputs.get("input") is None else [float(a) for a in inputs["input"]]
        if self.s["model"] is None or not u or not all(map(math.isfinite, u)) or not any(u):
            return None
        weights, bias = self.s["model"].arrays["weights"], self.s["model"].arrays["bias"]
        if len(u) != len(weights[0]):
            return None
        size = math.sqrt(math.fsum(a * a for a in u))
        unit = [a / size for a in u]
        return softmax(
            [math.fsum(w * a for w, a in zip(r, unit, strict=True)) + b for r, b in zip(weights, bias, strict=True)]
        )

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Entropy and main intent of this turn, and what the turns before make of them."""
        p = self._probabilities(inputs)
        if p is None:
            names = ("entropy_nats", "entropy_ratio", "intent", "switches", "unclear_turns", "is_churn")
            return dict.fromkeys(names)
        if len(p) != self.classes:
            self.reset()
            self.classes = len(p)
        entropy = -math.fsum(a * math.log(a) for a in p if a > 0)
        self.mains.append(p.index(max(p)))
        self.ratios.append(entropy / math.log(len(p)))
        last = self.mains[-self.s["window"] :]
        switches = sum(a != b and self.s["unknown"] not in (a, b) for a, b in pairwise(last))
        unclear = 0
        for ratio in reversed(self.ratios):
            if not ratio > self.s["limit"] + 1e-9:
                break
            unclear += 1
        return {
            "entropy_nats": entropy,
            "entropy_ratio": self.ratios[-1],
            "intent": float(self.mains[-1]),
            "switches": float(switches),
            "unclear_turns": float(unclear),
            "is_churn": float(unclear >= self.s["turns"] and switches >= self.s["switches"]),
        }
