"""A least-squares line through a few points that leaves outliers out.

The line is fitted once through all points, then once more without those whose residual is further from the median
residual than ``CUT`` median absolute deviations. One wild point in twenty tilts the first line, but not as far as
to hide behind it.
"""

from __future__ import annotations

import math

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.ordered import insert_ordered, ordered_median
from stabilitykit.kernels.pointers import Block

__all__ = ["CUT", "line_fit", "residual_spread"]

CUT = 5.0
"""Median absolute deviations: 3.4 standard deviations of a normal jitter."""


@kernel
def residual_spread(f: Block, xs: int, ys: int, n: int, slope: float, base: float, scratch: int) -> tuple[float, float]:
    """Give the median residual of n points about a line, and their median absolute deviation from it."""
    for k in range(n):
        insert_ordered(f, scratch, k, float(f[ys + k]) - base - slope * float(f[xs + k]))
    middle = ordered_median(f, scratch, n)
    for k in range(n):
        insert_ordered(f, scratch, k, abs(float(f[ys + k]) - base - slope * float(f[xs + k]) - middle))
    return middle, ordered_median(f, scratch, n)


@kernel
def line_fit(
    f: Block,
    xs: int,
    ys: int,
    n: int,
    last_slope: float,
    last_base: float,
    middle: float,
    width: float,
    most: float,
) -> tuple[float, float, float, float, float]:
    """Fit a line through those of n points whose residuals about an earlier line are ``middle`` +- ``width``.

    Parameters
    ----------
    f
        Holds the abscissas from ``xs`` on and the ordinates from ``ys`` on.
    last_slope, last_base
        Slope and height at 0 of the earlier line.
    middle, width
        Middle and half width of the residuals that count.
    most
        Greatest slope, in absolute value.

    Returns
    -------
    tuple
        Slope (kept within ``most``), height at 0, root mean square of the residuals, points used, and 1 where the
        slope was kept in. All NaN but the number of points when no two abscissas differ.
    """
    used, mean_x, mean_y = 0, 0.0, 0.0
    for k in range(n):
        x, y = float(f[xs + k]), float(f[ys + k])
        if abs(y - last_base - last_slope * x - middle) <= width:
            used += 1
            mean_x += x
            mean_y += y
    mean_x /= max(float(used), 1.0)
    mean_y /= max(float(used), 1.0)
    xx, xy = 0.0, 0.0
    for k in range(n):
        x, y = float(f[xs + k]), float(f[ys + k])
        if abs(y - last_base - last_slope * x - middle) <= width:
            xx += (x - mean_x) * (x - mean_x)
            xy += (x - mean_x) * (y - mean_y)
    if xx <= 0.0:
        return math.nan, math.nan, math.nan, float(used), math.nan
    slope = xy / xx
    is_kept_in = 1.0 if abs(slope) > most else 0.0
    slope = min(max(slope, -most), most)
    square = 0.0  # from the residuals themselves: the difference of sums of squares would be rounding
    for k in range(n):
        x, y = float(f[xs + k]), float(f[ys + k])
        if abs(y - last_base - last_slope * x - middle) <= width:
            rest = (y - mean_y) - slope * (x - mean_x)
            square += rest * rest
    return slope, mean_y - slope * mean_x, math.sqrt(square / float(used)), float(used), is_kept_in
