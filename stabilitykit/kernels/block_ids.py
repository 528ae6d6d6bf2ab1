"""Block ids as the library holds them: whole numbers of 64 bits, read as signed (vLLM's hashes come unsigned)."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index

import numpy as np
from numpy.typing import NDArray

from stabilitykit.errors import UsageError

__all__ = ["signed_id", "signed_ids"]

_HALF = 1 << 63


def signed_id(block: int) -> int:
    """Read one id as a signed number of 64 bits; of a longer one the low 64 bits.

    Raises
    ------
    UsageError
        No whole number: 1.5 is not block 1, nor is "1".

    Examples
    --------
    >>> signed_id(2**64 - 1), signed_id(-1), signed_id(7)
    (-1, -1, 7)
    """
    try:
        return (index(block) + _HALF) % (2 * _HALF) - _HALF
    except TypeError:
        raise UsageError("a block id is a whole number of 64 bits") from None


def signed_ids(blocks: Iterable[int]) -> NDArray[np.int64]:
    """Read ids, i64[n]: two spellings of the same 64 bits are one block.

    Raises
    ------
    UsageError
        Other numbers, or none at all.

    Examples
    --------
    >>> signed_ids([2**63, 1]).tolist()
    [-9223372036854775808, 1]
    """
    if isinstance(blocks, np.ndarray) and blocks.dtype.kind in "iu" and blocks.ndim == 1:
        return blocks.astype(np.int64)
    try:
        given = [index(block) for block in blocks]
    except TypeError:
        raise UsageError("block ids are whole numbers of 64 bits") from None
    try:
        return np.array(given, np.int64)
    except OverflowError:
        return np.array([signed_id(block) for block in given], np.int64)
