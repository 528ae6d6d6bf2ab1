"""No progress, slow and obvious."""

from __future__ import annotations

from typing import Any

__all__ = ["NoProgressTwin"]


class NoProgressTwin:
    """Lists of all gaps and first tokens."""

    def __init__(self, use: Any) -> None:
        self.settings = getattr(use, "settings", use)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.gaps: list[float] = []
        self.firsts: list[float] = []

    def usual(self, values: list[float]) -> float | None:
        """Give the exponentially weighted mean, unknown while cold or 0."""
        mean = 0.0
        for n, value in enumerate(values, 1):
            mean = mean + max(0.05, 1 / n) * (value - mean)
        return mean if len(values) >= self.settings["warmup"] and mean > 0 else None

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Compare the silence with what is usual, then learn."""
        age, itl, ttft, tokens = (inputs.get(k) for k in ("age", "itl", "ttft", "tokens"))
        has_begun = tokens is not None and tokens > 0
        base = self.usual(self.gaps if has_begun else self.firsts)
        factor = self.settings["itl_factor" if has_begun else "ttft_factor"]
        ratio = None if age is None or base is None else age / base
        if ratio is not None and ratio > 1e150:
            ratio = None
        is_hung = None if ratio is None else float(ratio > factor and age > self.settings["floor_ms"])
        if itl is not None:
            self.gaps.append(itl)
        if ttft is not None:
            self.firsts.append(ttft)
        return {"silence_ratio": ratio, "is_hung": is_hung}
