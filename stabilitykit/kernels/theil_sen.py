"""A slope that outliers cannot move: the median of the slopes of all pairs of points.

Up to 29 % of the points may be anything before the slope breaks down; a least-squares line breaks at one.

References
----------
.. [1] H. Theil, "A rank-invariant method of linear and polynomial regression analysis", 1950.
.. [2] P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau", JASA 63, 1968.
"""

from __future__ import annotations

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.ordered import insert_ordered, ordered_median
from stabilitykit.kernels.pointers import Block

__all__ = ["theil_sen", "theil_sen_size"]


def theil_sen_size(window: int) -> int:
    """Give the float64 elements of scratch that a window needs: one slope for each pair."""
    return window * (window - 1) // 2


@kernel
def theil_sen(ring: Block, oldest: int, n: int, window: int, scratch: int) -> float:
    """Give the median slope, per step, of the last n values of a ring; n is at least 2.

    Parameters
    ----------
    ring
        The window's values, and from ``scratch`` on room for the ordered slopes.
    oldest
        Place of the oldest value.
    """
    count = 0
    for a in range(n - 1):
        first = float(ring[(oldest + a) % window])
        for b in range(a + 1, n):
            slope = (float(ring[(oldest + b) % window]) - first) / float(b - a)
            count = insert_ordered(ring, scratch, count, slope)
    return ordered_median(ring, scratch, count)
