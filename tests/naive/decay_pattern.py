"""The decay-pattern automaton, slow and obvious: a table of transitions over lists."""

from __future__ import annotations

from typing import Any

__all__ = ["TABLE", "DecayPatternTwin"]

INIT, RAMPING_DOWN, STABILIZING = 0, 1, 2

TABLE = {
    # (state, band of the slope, back or settled): next state
    (INIT, "falling", False): RAMPING_DOWN,
    (INIT, "falling", True): RAMPING_DOWN,
    (INIT, "between", False): INIT,
    (INIT, "between", True): INIT,
    (INIT, "flat", False): INIT,
    (INIT, "flat", True): INIT,
    (RAMPING_DOWN, "falling", False): RAMPING_DOWN,
    (RAMPING_DOWN, "falling", True): RAMPING_DOWN,
    (RAMPING_DOWN, "between", False): RAMPING_DOWN,
    (RAMPING_DOWN, "between", True): RAMPING_DOWN,
    (RAMPING_DOWN, "flat", False): STABILIZING,
    (RAMPING_DOWN, "flat", True): STABILIZING,
    (STABILIZING, "falling", False): RAMPING_DOWN,
    (STABILIZING, "falling", True): RAMPING_DOWN,
    (STABILIZING, "between", False): STABILIZING,
    (STABILIZING, "between", True): INIT,
    (STABILIZING, "flat", False): STABILIZING,
    (STABILIZING, "flat", True): INIT,
}


class DecayPatternTwin:
    """Lists of all changes and values, and the table."""

    def __init__(self, use: Any) -> None:
        self.settings = getattr(use, "settings", use)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.state, self.waited, self.last = INIT, 0, None
        self.changes: list[float] = []
        self.values: list[float] = []
        self.usual: list[float] = []

    def mean_before(self) -> float:
        """Give the exponentially weighted mean of the usual values, without start-up bias."""
        mean = 0.0
        for n, value in enumerate(self.usual, 1):
            mean = mean + max(0.05, 1 / n) * (value - mean)
        return mean

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Take one value."""
        value, window = inputs.get("input"), self.settings["window"]
        slope = None
        if value is not None and abs(value) <= 1e150:
            change = (value - self.last) / self.last if self.last is not None and self.last > 0 else None
            before, self.last = self.last, value
            if change is not None and abs(change) <= 1e150:
                if self.state == INIT:
                    if len(self.changes) >= window:
                        self.usual.append(self.values[-window])
                    elif not self.usual:
                        self.usual.append(before)
                self.changes.append(change)
                self.values.append(value)
                if len(self.changes) >= window:
                    slope = sum(self.changes[-window:]) / window
                    self.step(slope, sum(self.values[-window:]) / window)
        warm = len(self.changes) >= window
        return {
            "state": self.state if warm else None,
            "slope": slope,
            "is_ramping": None if slope is None else float(self.state == RAMPING_DOWN),
            "is_stuck": None if slope is None else float(self.state == STABILIZING),
        }

    def step(self, slope: float, level: float) -> None:
        """Look the next state up."""
        s = self.settings
        fall = slope if s["direction"] == "down" else -slope
        band = "falling" if fall < -s["ramp"] else "flat" if fall > -s["flat"] else "between"
        usual, share = self.mean_before(), s["recovery"]
        back = level >= share * usual if s["direction"] == "down" else level * share <= usual
        settled = self.waited >= s["settle"]
        after = TABLE[self.state, band, back or settled]
        if self.state == STABILIZING and after == INIT and settled:
            self.usual = [level]
        self.waited = self.waited + 1 if after == STABILIZING else 0
        self.state = after
