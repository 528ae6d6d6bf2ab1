"""Dot product of float32 vectors in float64, in one fixed order.

Eight partial sums let the compiler keep eight lanes busy without reordering anything: compiled
and plain Python add the same numbers in the same order and agree to the last bit.
"""

from __future__ import annotations

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.pointers import Block

__all__ = ["dot"]


@kernel
def dot(u: Block, at_u: int, v: Block, at_v: int, n: int) -> float:
    """Give the dot product of u[at_u:at_u+n] and v[at_v:at_v+n]; NaN or inf where one holds them."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    whole = n - n % 8
    # `* 1.0` widens: numba's float() leaves a float32 a float32.
    for i in range(0, whole, 8):
        a, b = at_u + i, at_v + i
        s0 += float(u[a]) * 1.0 * float(v[b])
        s1 += float(u[a + 1]) * 1.0 * float(v[b + 1])
        s2 += float(u[a + 2]) * 1.0 * float(v[b + 2])
        s3 += float(u[a + 3]) * 1.0 * float(v[b + 3])
        s4 += float(u[a + 4]) * 1.0 * float(v[b + 4])
        s5 += float(u[a + 5]) * 1.0 * float(v[b + 5])
        s6 += float(u[a + 6]) * 1.0 * float(v[b + 6])
        s7 += float(u[a + 7]) * 1.0 * float(v[b + 7])
    total = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
    for i in range(whole, n):
        total += float(u[at_u + i]) * 1.0 * float(v[at_v + i])
    return total
