"""What a reply says, in a few words of memory: the set of its token 3-grams, counted and sketched.

Two estimates on one hash of each 3-gram. How many are distinct: mark one bit of a map for each and count the bits that
stay clear (linear counting). How much two replies share: the hash chooses a bin, each bin keeps its smallest hash, and
the share of bins that agree estimates the share of common 3-grams (one-permutation min-hash).

References
----------
.. [1] K.-Y. Whang, B. T. Vander-Zanden, H. M. Taylor, "A linear-time probabilistic counting algorithm", TODS 15, 1990.
.. [2] P. Li, A. Owen, C.-H. Zhang, "One permutation hashing", NIPS 2012.
"""

from __future__ import annotations

import math

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.bits import popcount64
from stabilitykit.kernels.pointers import Block

__all__ = ["BINS", "MAP_BITS", "MAP_WORDS", "SHINGLE", "distinct_estimate", "shared_ratio", "shingle_hash"]

SHINGLE = 3
BINS = 32
"""Bins of a sketch: the standard error of a share of 0.8 is 0.07."""
MAP_WORDS = 64
MAP_BITS = 32 * MAP_WORDS
_PRIME = 0x7FFF_FFFF
_FACTOR = 0x10_01AF


@kernel
def shingle_hash(t: Block, at: int) -> int:
    """Give 31 bits, never 0, of the three tokens from ``at`` on."""
    g = 0
    for k in range(3):
        word = int(t[at + k])
        g = (g * _FACTOR + (word & _PRIME) + ((word >> 31) & _PRIME) + 1) % _PRIME
    for _ in range(2):
        g = ((g ^ (g >> 15)) * 0x2C1B_3C6D) & _PRIME
    g ^= g >> 15
    return g if g != 0 else 1


@kernel
def distinct_estimate(words: Block) -> float:
    """Estimate how many distinct hashes marked a map, and clear it."""
    clear = 0
    for k in range(64):
        clear += 32 - popcount64(int(words[k]))
        words[k] = 0
    return 2048.0 * math.log(2048.0 / max(clear, 1))


@kernel
def shared_ratio(sketch: Block, other: Block) -> float:
    """Estimate the share of common 3-grams of two sketches, 0 when either is empty."""
    equal, used = 0, 0
    for k in range(32):
        if sketch[k] != 0 or other[k] != 0:
            used += 1
            equal += 1 if sketch[k] == other[k] else 0
    return float(equal) / float(used) if used > 0 else 0.0
