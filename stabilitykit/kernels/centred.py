"""Float32 vectors against the mean of their model: products with what is kept, and keeping one more.

Sentence embeddings of one model share a large common part, which says nothing about the topic and
makes all cosines alike; taking their mean away leaves what differs. Sums may run in another order
when compiled, as in ``cosine``: whoever compares them leaves a margin.
"""

from __future__ import annotations

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.pointers import Block

__all__ = ["centred_products", "keep_centred", "weighted_products"]


@kernel(fastmath={"contract", "reassoc"})
def centred_products(
    u: Block, scale: float, c: Block, centre: int, v: Block, one: int, two: int, mean: int, dim: int
) -> tuple[float, float, float, float]:
    """Give the products of z = scale u - c[centre:] with itself and with the blocks of v at one, two and mean."""
    zz, z1, z2, zm = 0.0, 0.0, 0.0, 0.0
    for i in range(dim):
        z = float(u[i]) * scale - float(c[centre + i])
        zz += z * z
        z1 += z * float(v[one + i])
        z2 += z * float(v[two + i])
        zm += z * float(v[mean + i])
    return zz, z1, z2, zm


@kernel(fastmath={"contract", "reassoc"})
def weighted_products(
    u: Block, scale: float, c: Block, centre: int, v: Block, one: int, two: int, mean: int, dim: int
) -> tuple[float, float, float, float, float, float, float]:
    """Give the same, then z, z again and z v[one:] weighed by the three rows of c behind the centre, in one loop."""
    zz, z1, z2, zm, now, later, both = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(dim):
        z = float(u[i]) * scale - float(c[centre + i])
        last = z * float(v[one + i])
        zz += z * z
        z1 += last
        z2 += z * float(v[two + i])
        zm += z * float(v[mean + i])
        now += z * float(c[centre + dim + i])
        later += z * float(c[centre + 2 * dim + i])
        both += last * float(c[centre + 3 * dim + i])
    return zz, z1, z2, zm, now, later, both


@kernel(fastmath={"contract", "reassoc"})
def keep_centred(
    u: Block, scale: float, c: Block, centre: int, norm: float, v: Block, at: int, mean: int, share: float, dim: int
) -> float:
    """Write z / norm to v[at:] and take ``share`` of it into v[mean:]; gives the square of the new mean's length."""
    square, inverse = 0.0, 1.0 / norm
    for i in range(dim):
        z = (float(u[i]) * scale - float(c[centre + i])) * inverse
        m = float(v[mean + i]) + share * (z - float(v[mean + i]))
        v[at + i] = z
        v[mean + i] = m
        square += m * m
    return square
