"""Signatures of vectors: one bit says on which side of a random hyperplane a vector lies (SimHash).

Two vectors at an angle t differ in a bit with probability t / pi, so the cosine is estimated as cos(pi h / b) from h
differing bits of b. Instead of b times d numbers a few thousand are kept for all: component i of hyperplane k is number
``k + i % 4096`` of the pool, with a sign of its own for each i, which makes the planes independent enough (a Toeplitz
matrix with random signs). The numbers are nearly normal: weights of one sign bit would do for even vectors, but hidden
states have a few components far greater than the rest, and of those bare signs estimate too small an angle.

References
----------
.. [1] M. S. Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002.
.. [2] F. X. Yu et al., "Circulant binary embedding", ICML 2014.
.. [3] C. Wellons, "Prospecting for hash functions", 2018 (the constants of the hash).
"""

from __future__ import annotations

import math
from functools import lru_cache

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.bits import popcount64
from stabilitykit.kernels.pointers import Block

__all__ = ["PERIOD", "VERSION", "cosine_estimate", "differing_bits", "is_direction", "pool", "sign_word"]

VERSION = 1
"""Names the hyperplanes: signatures of different versions must never be compared."""

PERIOD = 4096
"""Components after which the pool begins again, with other signs."""
_WORD = 0xFFFF_FFFF


@kernel
def hash32(g: int) -> int:
    """Give 32 well mixed bits of 32 bits."""
    g = ((g ^ (g >> 16)) * 0x7FEB_352D) & _WORD
    g = ((g ^ (g >> 15)) * 0x846C_A68B) & _WORD
    return g ^ (g >> 16)


@lru_cache(maxsize=8)
def pool(bits: int) -> tuple[float, ...]:
    """Give the numbers that hyperplanes are cut from: sums of eight bytes, centred, which are nearly normal."""
    return tuple(_nearly_normal(k) for k in range(PERIOD + bits))


def _nearly_normal(k: int) -> float:
    words = (hash32(k * 0x9E37_79B1 & _WORD), hash32(k * 0x9E37_79B1 + 0x85EB_CA77 & _WORD))
    return float(sum(byte for word in words for byte in word.to_bytes(4, "little")) - 1020)


@kernel
def sign_word(u: Block, at: int, width: int, p: Block, sums: Block, word: int) -> int:
    """Give 32 bits: on which sides of hyperplanes ``32 * word`` on u[at:at+width] lies; ``sums`` holds 32 numbers."""
    for b in range(32):
        sums[b] = 0.0
    for i in range(width):
        value = float(u[at + i]) * (1.0 if hash32(i) & 1 == 0 else -1.0)
        k = 32 * word + (i & (PERIOD - 1))
        for b in range(32):
            sums[b] += value * float(p[k + b])
    bits = 0
    for b in range(32):
        bits |= (1 if sums[b] > 0.0 else 0) << b
    return bits


@kernel
def is_direction(u: Block, at: int, width: int) -> bool:
    """Tell whether u[at:at+width] is finite and not all zero, so that it has an angle to others."""
    square = 0.0
    for i in range(width):
        value = float(u[at + i]) * 1.0
        square += value * value
    return square > 0.0 and math.isfinite(square)


@kernel
def differing_bits(a: int, b: int) -> int:
    """Count the bits in which two words differ."""
    return popcount64(a ^ b)


@kernel
def cosine_estimate(differing: int, bits: int) -> float:
    """Estimate the cosine of two vectors from the bits in which their signatures differ.

    ``cos(pi h / b)``, summed as a series, for machine code and plain Python must give the same bits.
    """
    angle = math.pi * float(differing) / float(bits)
    quarter = angle > 0.5 * math.pi
    t = math.pi - angle if quarter else angle
    term, total = 1.0, 1.0
    for k in range(1, 12):
        term *= -t * t / float((2 * k - 1) * (2 * k))
        total += term
    total = min(max(total, 0.0), 1.0)
    return -total if quarter else total
