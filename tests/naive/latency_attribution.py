"""The attribution of latencies, slow and obvious: lists of what was learned."""

from __future__ import annotations

from typing import Any

__all__ = ["LatencyAttributionTwin"]

PARTS = ("rt", "ttft", "itl")


def known(value):
    """Tell whether a duration is one."""
    return value is not None and 0 <= value <= 1e9


class Mean:
    """A mean that forgets, over the values it accepts."""

    def __init__(self, s):
        self.s, self.values, self.refused = s, [], 0

    def baseline(self):
        """Give the weighted mean of all values since the start, None while cold or nothing."""
        if len(self.values) < self.s["warmup"]:
            return None
        mean = self.mean()
        return mean if mean >= 1e-9 else None

    def mean(self):
        """Fold the list: the plain mean until 1 / alpha values."""
        mean = 0.0
        for n, value in enumerate(self.values, 1):
            mean += max(self.s["alpha"], 1 / n) * (value - mean)
        return mean

    def learn(self, value):
        """Take a value, or refuse what is too far above; after too many refusals start with it."""
        if not known(value):
            return
        is_warm = len(self.values) >= self.s["warmup"]
        if is_warm and value > self.s["limit"] * self.mean():
            self.refused += 1
            if self.refused < self.s["max_freeze"]:
                return
            self.values = []
        self.refused = 0
        self.values.append(value)


class LatencyAttributionTwin:
    """Shares of what is above the means, and the identity."""

    def __init__(self, use: Any) -> None:
        self.s = getattr(use, "settings", use)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.means = {name: Mean(self.s) for name in PARTS}

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Take one turn."""
        parts = {}
        for name in PARTS:
            base = self.means[name].baseline()
            value = inputs.get(name)
            if base is not None and known(value):
                parts[name] = self.s[f"{name}_weight"] * max(0.0, value / base - 1)
            self.means[name].learn(value)
        total = sum(parts.values()) if len(parts) == 3 else None
        out: dict[str, float | None] = {f"{name}_share": parts[name] / total if total else None for name in PARTS}
        given = [inputs.get(k) for k in (*PARTS, "tokens")]
        rt, ttft, itl, tokens = (float("nan") if v is None else float(v) for v in given)
        has_gaps = 2 <= tokens <= 1e9 and all(map(known, given))
        residual = rt - ttft - itl * (tokens - 1) if has_gaps else None
        is_consistent = None if residual is None else float(abs(residual) <= self.s["tolerance"] * rt)
        return out | {"excess": total, "residual_ms": residual, "is_consistent": is_consistent}
