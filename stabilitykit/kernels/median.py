"""The median of the last values of a stream: a ring of them, and the same values in order."""

from __future__ import annotations

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.pointers import Block

__all__ = ["median_add", "median_size"]

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
    i = n
    while i > 0 and float(f[ordered + i - 1]) > value:
        f[ordered + i] = f[ordered + i - 1]
        i -= 1
    f[ordered + i] = value
    n += 1
    f[RING + place] = value
    f[PLACE] = float((place + 1) % window)
    f[COUNT] = float(n)
    upper = float(f[ordered + n // 2])
    return upper if n % 2 == 1 else 0.5 * float(f[ordered + n // 2 - 1]) + 0.5 * upper
