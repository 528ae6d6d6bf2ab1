"""The latch, slow and obvious: the last value that was outside the band decides."""

from __future__ import annotations

from typing import Any

__all__ = ["LatchTwin"]


class LatchTwin:
    """Keeps every value."""

    def __init__(self, use: Any) -> None:
        self.settings = getattr(use, "settings", use)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.seen: list[float] = []

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Take one value."""
        value = inputs.get("input")
        if value is None:
            return {"is_on": None, "value": None, "threshold": None}
        self.seen.append(value)
        above, below = self.settings["above"], self.settings["below"]
        outside = [v for v in self.seen if v > above or v < below]
        is_on = bool(outside) and outside[-1] > above
        return {"is_on": float(is_on), "value": value, "threshold": below if is_on else above}
