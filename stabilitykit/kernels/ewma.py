"""Exponentially weighted mean and variance of a stream, without a start-up bias.

The weight of a new value is ``max(alpha, 1/n)``: the plain mean until ``1/alpha`` values were seen,
exponential forgetting from then on. The variance is updated from the deviation to the old mean
(Welford 1962, West 1979) and is a product of non-negative numbers: it can never be negative, as
the difference of two sums of squares can.
"""

from __future__ import annotations

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.pointers import Block

__all__ = ["COUNT", "LIMIT", "MEAN", "VARIANCE", "ewma_update"]

COUNT = 0
MEAN = 1
VARIANCE = 2
"""Places of the three numbers in their float64 block."""

LIMIT = 1e150
"""A greater magnitude has no finite square: callers take it for unknown."""


@kernel
def ewma_update(f: Block, value: float, alpha: float) -> int:
    """Take one known value into the statistics; gives 0."""
    n = float(f[COUNT]) + 1.0
    weight = max(alpha, 1.0 / n)
    step = value - float(f[MEAN])
    f[COUNT] = n
    f[MEAN] = float(f[MEAN]) + weight * step
    f[VARIANCE] = (1.0 - weight) * (float(f[VARIANCE]) + weight * step * step)
    return 0
