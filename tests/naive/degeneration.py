"""Degeneration, slow and obvious: every period at every place, sets of hashes."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["DegenerationTwin", "cycles"]

PRIME = 2**31 - 1


def cycles(tokens: list[int], max_period: int, copies: int, least: int) -> tuple[int, int]:
    """Give period and length of the cycle that covers most tokens, (0, 0) without one."""
    found = (0, 0)
    for period in range(1, max_period + 1):
        run = 0
        for at in range(period, len(tokens)):
            run = run + 1 if tokens[at] == tokens[at - period] else 0
            covered = run + period
            if run and covered > found[1] and covered >= least and covered >= copies * period:
                found = (period, covered)
    return found


def hash3(gram: list[int]) -> int:
    """Hash three tokens to 31 bits, never 0."""
    g = 0
    for token in gram:
        word = token % 2**64
        g = (g * 0x1001AF + word % 2**31 + (word >> 31) % 2**31 + 1) % PRIME
    for _ in range(2):
        g = ((g ^ g >> 15) * 0x2C1B3C6D) % 2**31
    return (g ^ g >> 15) or 1


class DegenerationTwin:
    """Remembers the smallest hash of each bin of the last four replies."""

    def __init__(self, use: Any) -> None:
        self.settings = getattr(use, "settings", use)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.progress: float | None = None
        self.run = 0
        self.replies: list[dict[int, int]] = []

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Judge one answer."""
        names = ("cycle_period", "cycle_copies", "repetition_ratio", "similarity_ratio", "repeats_count")
        out: dict[str, float | None] = dict.fromkeys((*names, "special_count", "peak_ratio", "is_degenerate"))
        logprobs = inputs.get("logprobs")
        if logprobs is not None and len(logprobs):
            out["peak_ratio"] = math.exp(min(max(logprobs), 0.0))
        progress, tokens = inputs.get("progress"), inputs.get("output")
        is_moving = None not in (progress, self.progress) and progress != self.progress
        if is_moving:
            self.run = 0
        if progress is not None:
            self.progress = progress
        if tokens is not None and len(tokens):
            polls = inputs.get("finish") == 2 and progress is None
            self.judge([int(t) for t in tokens], out, is_moving, polls)
        return out

    def judge(self, tokens: list[int], out: dict[str, float | None], is_moving: bool, polls: bool) -> None:
        """Fill in what the tokens say."""
        s, tail = self.settings, tokens[-1024:]
        period, covered = cycles(tail, s["max_period"], s["copies"], s["tokens"])
        out["cycle_period"], out["cycle_copies"] = period, covered / period if period else 0.0
        hashes = [hash3(tail[i : i + 3]) for i in range(len(tail) - 2)]
        close = hashes[-254:]
        clear = 2048 - len({g % 2048 for g in close})
        if len(tokens) >= s["tokens"] and close:
            out["repetition_ratio"] = max(1 - 2048 * math.log(2048 / clear) / len(close), 0.0)
        if len(tokens) >= 16:
            bins: dict[int, int] = {}
            for g in hashes:
                k = g >> 11 & 31
                bins[k] = min(g, bins.get(k, g))
            shares = [self.share(bins, other) for other in self.replies[-4:]]
            out["similarity_ratio"] = max(shares, default=None)
            if not polls:
                alike = shares and max(shares) >= s["similar"] and not is_moving
                self.run = self.run + 1 if alike else 0
                self.replies.append(bins)
        out["repeats_count"] = self.run
        low, high = s["special_from"], s["special_to"]
        out["special_count"] = sum(low <= t < high for t in tokens[:-1]) if low < high else None
        repeated = (out["repetition_ratio"] or 0.0) > s["repetition"]
        out["is_degenerate"] = float(period > 0 or repeated or self.run >= s["repeats"])

    @staticmethod
    def share(one: dict[int, int], two: dict[int, int]) -> float:
        """Give the share of bins in use that agree."""
        used = one.keys() | two.keys()
        return sum(one.get(k) == two.get(k) for k in used) / len(used)
