"""Whole numbers from a host: a float that would be cut off, or a number too large, is refused instead."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stabilitykit.errors import UsageError

__all__ = ["whole_number", "whole_numbers"]


def whole_numbers(given: ArrayLike, what: str) -> NDArray[np.int64]:
    """Read whole numbers of any integer type, int64[...]; nothing at all is none of them, whatever its type.

    Raises
    ------
    UsageError
        Other numbers, or beyond 64 bits.

    Examples
    --------
    >>> whole_numbers([1, 2], "positions").tolist()
    [1, 2]
    >>> whole_numbers([1.0], "positions")
    Traceback (most recent call last):
    stabilitykit.errors.UsageError: positions are whole numbers of 64 bits
    """
    try:
        found = np.asarray(given)
    except (TypeError, ValueError):  # rows of different lengths
        raise UsageError(f"{what} are one array of numbers") from None
    if found.size and (found.dtype.kind not in "iu" or found.max() > np.iinfo(np.int64).max):
        raise UsageError(f"{what} are whole numbers of 64 bits")
    return found.astype(np.int64)


def whole_number(given: Any, what: str, least: int = 0) -> int:
    """Read one whole number of any integer type.

    Raises
    ------
    UsageError
        Another number, True among them, one below ``least``, or beyond 64 bits.

    Examples
    --------
    >>> whole_number(True, "n_sink")
    Traceback (most recent call last):
    stabilitykit.errors.UsageError: n_sink is a whole number from 0 on, not True
    """
    try:
        found = index(given)
    except TypeError:
        found = least - 1
    if isinstance(given, bool | np.bool) or not least <= found < 1 << 63:
        raise UsageError(f"{what} is a whole number from {least} on, not {str(given)[:40]}")
    return found
