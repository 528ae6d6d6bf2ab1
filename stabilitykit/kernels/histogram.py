"""Log-linear histogram on float bits: quantiles of a stream with a guaranteed relative error.

The top bits of a positive float64 are its octave and, inside it, an equal slice: the bin is a shift
of the bit pattern, no logarithm (Tene's HdrHistogram uses the same cells on integers). With ``s``
slices an octave the value given for a bin is off by at most ``1/(2s+1)``: 1.6 % for 32, 3.1 % for 16.

A block of unsigned integers holds ``octaves * s`` counts and then one sum per octave, so a query
walks at most ``octaves + s`` numbers. The caller keeps the number of values ``n`` below the limit
of its integer type with ``histogram_halve``.
"""

from __future__ import annotations

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.bits import float_bits
from stabilitykit.kernels.pointers import Block

__all__ = [
    "first_bin",
    "histogram_add",
    "histogram_bin",
    "histogram_estimate",
    "histogram_halve",
    "histogram_place",
    "histogram_size",
    "histogram_value",
]


def first_bin(lowest: float, slice_bits: int) -> float:
    """Give the ``base`` of a histogram whose range begins at ``lowest``, a power of two."""
    return float(float_bits(lowest) >> (52 - slice_bits))


def histogram_size(octaves: int, slice_bits: int) -> int:
    """Give the number of counts: every bin and the sum of every octave."""
    return (octaves << slice_bits) + octaves


@kernel
def histogram_bin(value: float, base: int, octaves: int, slice_bits: int) -> int:
    """Give the bin of a finite value; what lies outside the range goes to the bin at its end.

    The pattern of a negative float is a negative integer, so it goes to the lower end as well.
    """
    b = (float_bits(value) >> (52 - slice_bits)) - base
    return min(max(b, 0), (octaves << slice_bits) - 1)


@kernel
def histogram_add(h: Block, b: int, octaves: int, slice_bits: int) -> int:
    """Count one value in bin b; gives 0."""
    octave = (octaves << slice_bits) + (b >> slice_bits)
    h[b] = int(h[b]) + 1
    h[octave] = int(h[octave]) + 1
    return 0


@kernel
def histogram_halve(h: Block, octaves: int, slice_bits: int) -> int:
    """Halve all counts and give their new sum, half the old one.

    An odd count hands its remainder to the next lower bin, so every rank from the top is halved
    exactly; rounding each bin would wipe out a tail of single counts.
    """
    slices = 1 << slice_bits
    carry = 0
    total = 0
    for octave in range(octaves - 1, -1, -1):
        inside = 0
        for b in range(octave * slices + slices - 1, octave * slices - 1, -1):
            carry += int(h[b])
            h[b] = carry >> 1
            inside += carry >> 1
            carry &= 1
        h[octaves * slices + octave] = inside
        total += inside
    return total


@kernel
def histogram_value(h: Block, rank: int, top: float, octaves: int, slice_bits: int) -> float:
    """Give the value that is ``rank``-th from the top (1 is the greatest).

    Parameters
    ----------
    top
        Where the highest octave begins, a power of two.
    """
    slices = 1 << slice_bits
    octave = octaves - 1
    edge = top
    left = rank - int(h[octaves * slices + octave])
    while left > 0 and octave > 0:
        octave -= 1
        edge *= 0.5
        left -= int(h[octaves * slices + octave])
    b = octave * slices
    left += int(h[octaves * slices + octave])
    k = slices - 1
    left -= int(h[b + k])
    while left > 0 and k > 0:
        k -= 1
        left -= int(h[b + k])
    low = 1.0 * (slices + k)
    # The harmonic mean of both ends errs equally much at each of them.
    return edge / slices * (2.0 * low * (low + 1.0) / (2.0 * low + 1.0))


@kernel
def histogram_place(h: Block, rank: int, octaves: int, slice_bits: int) -> float:
    """Give the bin of the value that is ``rank``-th from the top, and how far up in it if its values lie evenly.

    The bin is the whole part, strictly below the next.
    """
    slices = 1 << slice_bits
    octave = octaves - 1
    left = rank - int(h[octaves * slices + octave])
    while left > 0 and octave > 0:
        octave -= 1
        left -= int(h[octaves * slices + octave])
    b = octave * slices + slices - 1
    left += int(h[octaves * slices + octave]) - int(h[b])
    while left > 0 and b > octave * slices:
        b -= 1
        left -= int(h[b])
    count = float(int(h[b]))
    place = left + count  # from the top of the bin
    if place < 1.0 or place > count:
        return b + 0.5
    return b + 1.0 - (place - 0.5) / count


@kernel
def histogram_estimate(h: Block, rank: int, bottom: float, octaves: int, slice_bits: int) -> float:
    """Give the value that is ``rank``-th from the top, evened out inside its bin as far as the guarantee allows.

    As ``histogram_value`` it is off by at most ``1/(2s+1)``, s slices an octave. Only in the first
    slice of an octave, relatively the widest, that takes its middle; the others leave room.

    Parameters
    ----------
    bottom
        Where the lowest octave begins, a power of two.
    """
    slices = 1 << slice_bits
    place = histogram_place(h, rank, octaves, slice_bits)
    b = int(place)
    width = bottom / slices
    for _octave in range(b >> slice_bits):
        width *= 2.0
    low = width * (slices + (b & (slices - 1)))
    worst = 1.0 / (2.0 * slices + 1.0)
    return min(max(low + width * (place - b), (low + width) * (1.0 - worst)), low * (1.0 + worst))
