"""A few values in ascending order: putting one more in, and their median."""

from __future__ import annotations

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.pointers import Block

__all__ = ["insert_ordered", "ordered_median"]


@kernel
def insert_ordered(f: Block, at: int, n: int, value: float) -> int:
    """Put a value among the n ordered ones in f[at:], behind its equals; gives n + 1."""
    i = at + n
    while i > at and float(f[i - 1]) > value:
        f[i] = f[i - 1]
        i -= 1
    f[i] = value
    return n + 1


@kernel
def ordered_median(f: Block, at: int, n: int) -> float:
    """Give the median of the n ordered values in f[at:], n at least 1."""
    upper = float(f[at + n // 2])
    return upper if n % 2 == 1 else 0.5 * float(f[at + n // 2 - 1]) + 0.5 * upper
