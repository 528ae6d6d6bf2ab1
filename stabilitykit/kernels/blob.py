"""Tables for the compiled pass: three flat arrays (int32, float64, uint64) with offsets.

Three arguments instead of dozens: every array that crosses into compiled code costs tens of
nanoseconds a call, an offset costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Blob"]


class Blob:
    """Grows three flat arrays and says where each table starts.

    Examples
    --------
    >>> blob = Blob(header=2)
    >>> blob.ints([7, 8]), blob.floats([1.5])
    (2, 0)
    >>> blob.header[0] = 2
    >>> blob.arrays()[0]
    array([2, 0, 7, 8], dtype=int32)
    """

    def __init__(self, header: int) -> None:
        self.header = [0] * header
        self._ints: list[int] = []
        self._floats: list[float] = []
        self._words: list[int] = []

    def ints(self, values: Iterable[int]) -> int:
        """Append int32 values; gives the index of the first."""
        at = len(self.header) + len(self._ints)
        self._ints.extend(values)
        return at

    def floats(self, values: Iterable[float]) -> int:
        """Append float64 values; gives the index of the first."""
        at = len(self._floats)
        self._floats.extend(values)
        return at

    def words(self, values: Iterable[int]) -> int:
        """Append uint64 values; gives the index of the first."""
        at = len(self._words)
        self._words.extend(values)
        return at

    def arrays(self) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.uint64]]:
        """Give the finished arrays (floats and words are never empty)."""
        return (
            np.array([*self.header, *self._ints], np.int32),
            np.array([*self._floats, 0.0], np.float64),
            np.array([*self._words, 0], np.uint64),
        )
