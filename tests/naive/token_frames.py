"""The slow obvious twin of token_frames: pairs, differences, the greatest."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise


class NaiveTokenFrames:
    """One input at a time."""

    def __init__(self, settings):
        self.settings = settings

    def reset(self):
        """Nothing is remembered."""

    def update(self, inputs):
        """Take one turn."""
        frames, times = list(inputs.get("frames") or []), list(inputs.get("times") or [])
        out = dict.fromkeys(("drift", "max_drift", "index", "backwards_count", "excess_count"))
        if frames or times:
            out["excess_count"] = len(frames) - len(times)
        if frames:
            out["backwards_count"] = sum(b < a for a, b in pairwise(frames))
        if frames and times:
            expected = [Fraction(t, self.settings["frame"]).__floor__() for t in times]
            apart = [float(a) - float(b) for a, b in zip(frames, expected, strict=False)]
            worst = max(apart, key=abs)
            out |= {"drift": worst, "max_drift": abs(worst), "index": apart.index(worst) if worst else None}
        return out
