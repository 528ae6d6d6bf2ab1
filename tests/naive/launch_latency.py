"""The launch, slow and obvious: a sum of a list, and its parts over it."""

from __future__ import annotations

from typing import Any

__all__ = ["LaunchLatencyTwin"]

PARTS = ("host", "queue", "sync")


class LaunchLatencyTwin:
    """Remembers nothing."""

    def __init__(self, use: Any) -> None:
        self.settings = getattr(use, "settings", use)

    def reset(self) -> None:
        """Have nothing to forget."""

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Judge one launch."""
        parts = [inputs.get(name) for name in PARTS]
        out: dict[str, float | None] = dict.fromkeys(
            ("bound_us", "host_share", "queue_share", "sync_share", "residual_us", "is_inconsistent")
        )
        out["tolerated_us"] = -self.settings["resolution"]
        if any(part is None for part in parts):
            return out
        whole = sum(parts)  # type: ignore[arg-type]
        out["bound_us"] = whole
        if whole > 0:
            out |= {f"{name}_share": part / whole for name, part in zip(PARTS, parts, strict=True)}  # type: ignore[operator]
        if inputs.get("total") is not None:
            out["residual_us"] = inputs["total"] - whole
            out["is_inconsistent"] = float(whole - inputs["total"] > self.settings["resolution"])
        return out
