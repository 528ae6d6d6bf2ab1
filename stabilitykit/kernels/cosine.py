"""Dot product of vectors, summed in float64.

Compiled code may add in another order than plain Python, which is what lets it add several numbers
at once; a product of two float32 numbers is exact in float64, so only the sums differ, by about
1e-16 of the greatest of them. Whoever compares the result with a bound leaves a margin of ``GUARD``.
"""

from __future__ import annotations

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.pointers import Block

__all__ = ["dot"]


@kernel(fastmath={"contract", "reassoc"})
def dot(u: Block, at_u: int, v: Block, at_v: int, n: int) -> float:
    """Give the dot product of u[at_u:at_u+n] and v[at_v:at_v+n]; NaN or inf where one holds them."""
    total = 0.0
    for i in range(n):
        # `* 1.0` widens: numba's float() leaves a float32 a float32.
        total += float(u[at_u + i]) * 1.0 * float(v[at_v + i])
    return total
