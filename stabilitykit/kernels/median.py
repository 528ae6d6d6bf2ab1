"""The median of the last values of a stream: a ring of them, and the same values in order."""

from __future__ import annotations

import math

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.ordered import insert_ordered, ordered_median
from stabilitykit.kernels.pointers import Block

__all__ = ["RING", "median_add", "median_of", "median_size"]

COUNT, PLACE, RING = 0, 1, 2


def median_size(window: int) -> int:
    """Give the float64 elements that a window needs: number, next place, ring, ordered values."""
    return RING + 2 * window


@kernel
def median_add(f: Block, window: int, value: float) -> float:
    """Take a value in, forget the one that leaves the window, and give the median."""
    n = int(f[COUNT])
    place = int(f[PLACE])
    ordered = RING + window
    if n == window:
        leaves = float(f[RING + place])
        i = 0
        while float(f[ordered + i]) != leaves:
            i += 1
        n -= 1
        while i < n:
            f[ordered + i] = f[ordered + i + 1]
            i += 1
    n = insert_ordered(f, ordered, n, value)
    f[RING + place] = value
    f[PLACE] = float((place + 1) % window)
    f[COUNT] = float(n)
    return ordered_median(f, ordered, n)


@kernel
def median_of(f: Block, window: int) -> float:
    """Give the median of what was taken in, NaN before the first value."""
    n = int(f[COUNT])
    return ordered_median(f, RING + window, n) if n > 0 else math.nan
