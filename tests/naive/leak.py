"""The leak, slow and obvious: the two halves of a list."""

from __future__ import annotations

from typing import Any

__all__ = ["LeakTwin"]


class LeakTwin:
    """Keeps the samples that had both numbers."""

    def __init__(self, use: Any) -> None:
        self.settings = getattr(use, "settings", use)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.seen: list[tuple[float, float]] = []

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Compare both halves."""
        usage, running = inputs.get("usage"), inputs.get("running")
        half = self.settings["window"] // 2
        out: dict[str, float | None] = dict.fromkeys(("usage_ratio", "running_ratio", "is_leak"))
        if usage is None or running is None or abs(usage) > 1e150:
            return out
        self.seen.append((usage, running))
        if len(self.seen) < 2 * half:
            return out
        for place, name in enumerate(("usage_ratio", "running_ratio")):
            values = [sample[place] for sample in self.seen[-2 * half :]]
            older, newer = sum(values[:half]), sum(values[half:])
            ratio = newer / older if older > 0 else None
            out[name] = ratio if ratio is not None and ratio <= 1e150 else None
        more, fewer = out["usage_ratio"], out["running_ratio"]
        if more is not None and fewer is not None:
            out["is_leak"] = float(more > 1 + self.settings["rise"] and fewer < 1 - self.settings["fall"])
        return out
