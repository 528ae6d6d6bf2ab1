"""The longest exact cycle in a list of tokens, without comparing everything with everything.

A cycle of period p is a stretch in which every token equals the one p places before. A stretch that is long
enough to count cannot avoid all of some evenly spaced places, so only these are tried, for every period, and
where one fits it is followed both ways. For p up to 128 and a spacing of 32 that is four comparisons a token.
"""

from __future__ import annotations

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.pointers import Block

__all__ = ["cycle_spacing", "longest_cycle"]


def cycle_spacing(max_period: int, copies: int, tokens: int) -> int:
    """Give the shortest run of equal pairs that a cycle of any period has: no such run misses every place."""
    return min(max(tokens - p, (copies - 1) * p) for p in range(1, max_period + 1))


@kernel
def run_end(t: Block, at: int, period: int, n: int) -> int:
    """Give the first place from ``at`` on whose token is not the one a period before."""
    while at < n and t[at] == t[at - period]:
        at += 1
    return at


@kernel
def longest_cycle(
    t: Block, start: int, n: int, max_period: int, copies: int, tokens: int, spacing: int, found: Block
) -> int:
    """Find the cycle that covers most tokens, the shortest period of equals; found is ``period, tokens``; gives 0.

    Parameters
    ----------
    start, n
        The tokens are ``t[start:n]``.
    copies, tokens
        What a cycle must have at least.
    spacing
        By ``cycle_spacing``.
    """
    best, period = 0, 0
    for p in range(1, max_period + 1):
        at = start + p + spacing - 1
        while at < n:
            if t[at] == t[at - p]:
                first = at
                while first > start + p and t[first - 1] == t[first - 1 - p]:
                    first -= 1
                end = run_end(t, at, p, n)
                covered = end - first + p
                if covered > best and covered >= tokens and covered >= copies * p:
                    best, period = covered, p
                at += (end - at) // spacing * spacing
            at += spacing
    found[0] = float(period)
    found[1] = float(best)
    return 0
