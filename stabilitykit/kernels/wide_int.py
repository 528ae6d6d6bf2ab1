"""A signed 64-bit integer in two words of the uint32 row: a float64 holds nanoseconds of 104 days only."""

from __future__ import annotations

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.pointers import Block

__all__ = ["read_wide", "write_wide"]


@kernel
def write_wide(h: Block, k: int, value: int) -> int:
    """Put a value into words k and k + 1; gives 0."""
    h[k] = value & 0xFFFFFFFF
    h[k + 1] = (value >> 32) & 0xFFFFFFFF
    return 0


@kernel
def read_wide(h: Block, k: int) -> int:
    """Give the value of words k and k + 1."""
    high = int(h[k + 1])
    if high >= 0x80000000:
        high -= 0x100000000
    return high * 0x100000000 + int(h[k])
