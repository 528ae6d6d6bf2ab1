"""The greatest values of a stream, sorted, in fixed memory: an extreme quantile that is exact.

p99.9 of n values is the one of rank ``n / 1000 + 1`` from the top, so 32 kept values give it exactly up to
n = 31,000. There n is halved and every second value is given up: what is left stands for half the past, ranks
and all. After that a value must exceed the least one kept to be kept itself; one in a thousand does, as many
as the rank grows by. The other end of a stream is the greatest of its negated values.
"""

from __future__ import annotations

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.pointers import Block

__all__ = ["KEPT", "TAIL", "tail_bound", "tail_take", "tail_thin"]

KEPT = 32
TAIL = KEPT + 1
"""float64 elements of one tail: how many are kept, then those, the greatest first."""


@kernel
def tail_bound(f: Block, at: int, count: int) -> float:
    """Give p99.9 of ``count`` values, the greatest below 1,000; the tail at ``at`` holds one value or more."""
    rank = min(count // 1000, int(f[at]) - 1)
    return float(f[at + 1 + rank])


@kernel
def tail_take(f: Block, at: int, value: float, count: int) -> int:
    """Take a value in, the ``count``-th; gives 0."""
    held = int(f[at])
    if count > KEPT and value <= float(f[at + held]):
        return 0
    k = held if held < KEPT else KEPT - 1
    while k > 0 and float(f[at + k]) < value:
        f[at + 1 + k] = float(f[at + k])
        k -= 1
    f[at + 1 + k] = value
    f[at] = float(min(held + 1, KEPT))
    return 0


@kernel
def tail_thin(f: Block, at: int) -> int:
    """Give up every second value, the greatest first; gives 0."""
    held = int(f[at]) // 2
    for k in range(held):
        f[at + 1 + k] = float(f[at + 2 + 2 * k])
    f[at] = float(held)
    return 0
