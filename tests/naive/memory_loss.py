"""Memory loss, slow and obvious."""

from __future__ import annotations

from typing import Any

__all__ = ["MemoryLossTwin"]


class MemoryLossTwin:
    """Remembers the last prompt and every kept share."""

    def __init__(self, use: Any) -> None:
        self.settings = getattr(use, "settings", use)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.before: float | None = None
        self.kept: list[float] = []
        self.frozen = 0

    def usual(self) -> float:
        """Give the exponentially weighted mean of the kept shares."""
        mean = 0.0
        for n, share in enumerate(self.kept, 1):
            mean = mean + max(0.05, 1 / n) * (share - mean)
        return mean

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Compare with what was sent, and with the turn before."""
        sent, used, hits = (inputs.get(k) for k in ("sent", "used", "hits"))
        out: dict[str, float | None] = dict.fromkeys(("lost_ratio", "is_lost", "kept_ratio", "is_collapsed"))
        whole = self.before if sent is None else sent
        if used is not None and whole:
            out["lost_ratio"] = max(1 - used / whole, 0.0)
            out["is_lost"] = float(out["lost_ratio"] > self.settings["lost"])
        if used is not None and hits is not None and self.before:
            kept = min(hits * used / self.before, 1.0)
            collapsed = None
            if len(self.kept) >= self.settings["warmup"]:
                collapsed = kept < self.usual() - self.settings["fall"]
                out["is_collapsed"] = float(collapsed)
            out["kept_ratio"] = kept
            self.frozen = self.frozen + 1 if collapsed else 0
            if self.frozen >= 50:
                self.kept, self.frozen = [], 0
            if self.frozen == 0:
                self.kept.append(kept)
        if used is not None:
            self.before = used
        return out
