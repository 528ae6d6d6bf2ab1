"""Percentiles of a few values, as NumPy's default method gives them: linear between two ranks.

References
----------
.. [1] R. J. Hyndman, Y. Fan, "Sample quantiles in statistical packages", 1996, definition 7.
"""

from __future__ import annotations

import math

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.ordered import insert_ordered
from stabilitykit.kernels.pointers import Block, offset_f8

__all__ = ["percentile", "sorted_percentile"]


@kernel
def sorted_percentile(ordered: Block, n: int, share: float) -> float:
    """Give the percentile of n values in ascending order; ``share`` is 0.9 for P90, n at least 1.

    The rounding is NumPy's: from the nearer end of the two neighbours.
    """
    place = share * float(n - 1)
    low = int(place)
    part = place - float(low)
    below = float(ordered[low])
    above = float(ordered[min(low + 1, n - 1)])
    step = above - below
    return below + step * part if part < 0.5 else above - step * (1.0 - part)


@kernel
def percentile(f: Block, start: int, n: int, share: float, scratch: int) -> float:
    """Give the percentile of the known ones of n values in any order, NaN when there is none.

    Parameters
    ----------
    f
        Holds the values from ``start`` on, NaN for unknown, and room for n more from ``scratch`` on.
    """
    count = 0
    for k in range(n):
        value = float(f[start + k])
        if not math.isnan(value):
            count = insert_ordered(f, scratch, count, value)
    return math.nan if count == 0 else sorted_percentile(offset_f8(f, scratch), count, share)
