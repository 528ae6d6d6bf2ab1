"""Bits of numbers: the pattern of a float and the number of set bits of a word."""

from __future__ import annotations

import struct

from stabilitykit.kernels._registry import kernel

__all__ = ["float_bits", "popcount64"]

_DOUBLE = struct.Struct("=d")
_INT64 = struct.Struct("=q")


@kernel
def float_bits(x: float) -> int:
    """Give the IEEE 754 pattern of a float64 as a signed 64-bit integer."""
    return int(_INT64.unpack(_DOUBLE.pack(x))[0])


@kernel
def popcount64(x: int) -> int:
    """Count the set bits of a 64-bit word; a negative one counts in two's complement."""
    return (int(x) & 0xFFFF_FFFF_FFFF_FFFF).bit_count()
