"""The seven pre-crash signs, slow and obvious: when each was last up, and which of those times still count."""

from __future__ import annotations

from typing import Any

from tests.naive.hash_collisions import naive_z
from tests.naive.queue_pressure import spread
from tests.naive.transition_spike import SpikePast

__all__ = ["PrecrashTwin"]

NAMES = ("transition", "hash", "ring", "full", "cas", "recv", "slots")


class PrecrashTwin:
    """One sample at a time."""

    def __init__(self, use: Any) -> None:
        self.settings = getattr(use, "settings", use)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.past = SpikePast(self.settings["transition_limit"], self.settings["lowest"])
        self.windows = 0
        self.last_up: dict[str, float] = {}

    def judge(self, inputs: dict[str, Any]) -> dict[str, bool | None]:
        """Say of each sign whether it is up on this sample; None is unknown."""
        limit = {name: self.settings[f"{name}_limit"] for name in NAMES}
        up: dict[str, bool | None] = dict.fromkeys(NAMES)
        if inputs.get("transition") is not None:
            self.past.take(inputs["transition"])
            up["transition"] = sum(self.past.verdicts) >= 3
        keys, buckets, occupied = (inputs.get(name) for name in ("keys", "buckets", "occupied"))
        if None not in (keys, buckets, occupied) and keys >= 8 and 1 <= occupied <= min(keys, buckets):  # type: ignore[operator,type-var]
            is_over = naive_z(keys, buckets, occupied) > limit["hash"] * (1 + 1e-9)  # type: ignore[arg-type]
            self.windows = self.windows + 1 if is_over else 0
            up["hash"] = self.windows >= 3
        for name in ("ring", "cas"):
            if inputs.get(name) is not None:
                up[name] = inputs[name] > limit[name]
        for name in ("full", "recv"):
            if inputs.get(name) is not None:
                up[name] = inputs[name] >= limit[name]
        found = spread(inputs.get("occupancy") or [], 64)
        if found is not None and found[1] is not None and found[2] is not None:
            up["slots"] = found[1] < limit["slots"] and found[2] > 0.5
        return up

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Take one sample."""
        up, now = self.judge(inputs), inputs.get("time")
        left = []
        active = [name for name in NAMES if up[name]]
        if now is not None:
            self.last_up |= dict.fromkeys(active, now)
            active = []
            for name, at in self.last_up.items():
                lead = self.settings[f"{name}_lead"] / 1000
                if abs(now - at) <= lead:
                    active.append(name)
                    left.append((lead - abs(now - at)) * 1000)
        is_known = bool(active) or any(verdict is not None for verdict in up.values())
        return {
            "active_count": float(len(active)) if is_known else None,
            "active_mask": float(sum(1 << NAMES.index(name) for name in active)) if is_known else None,
            "time_left_ms": min(left) if left else None,
        }
