"""What a cell of an attention mask may hold, and which legal value is nearest to one that was damaged.

A boolean mask holds 0 and 1. An additive one holds 0 where a key is seen and minus infinity, or the least number of
its type, where it is not; in half precision these are three of 65,536 patterns. Clearing the lowest bit, as the source
has it, makes 0 of a boolean 1 and misses every other bit (formulas B3.3), so the value decides, not the bit.
"""

from __future__ import annotations

from stabilitykit.kernels._registry import kernel

__all__ = ["HALF_INFINITE", "HALF_LEAST", "canonical_bool", "canonical_half"]

HALF_LEAST = 0xFBFF
"""-65504, the least finite half; half of it, -32752, is the pattern 0xF7FF."""
HALF_INFINITE = 0xFC00
_MAGNITUDE = 0x7FFF
_MIDDLE = 0x77FF
_INFINITE = 0x7C00


@kernel
def canonical_bool(cell: int) -> int:
    """Give the nearer of 0 and 1."""
    return 1 if cell > 0 else 0


@kernel
def canonical_half(pattern: int) -> int:
    """Give the legal pattern nearest to the value of a half-precision pattern.

    Parameters
    ----------
    pattern
        The 16 bits of an additive mask's cell; a number that is no such pattern blocks its key.

    Returns
    -------
    int
        0, ``HALF_LEAST`` or ``HALF_INFINITE``. NaN blocks its key, for a NaN that is added spoils the whole row;
        -32752, as far from 0 as from the least, blocks it, too.

    Examples
    --------
    >>> [hex(canonical_half(p)) for p in (0x0001, 0x8000, 0xFBFE, 0xFC01, 0x7C00)]
    ['0x0', '0x0', '0xfbff', '0xfc00', '0x0']
    """
    if pattern < 0 or pattern > 0xFFFF:
        return HALF_INFINITE
    size = pattern & _MAGNITUDE
    if size > _INFINITE:
        return HALF_INFINITE
    if pattern == size or size < _MIDDLE:
        return 0
    return HALF_INFINITE if size == _INFINITE else HALF_LEAST
