"""Signatures of a snapshot's vectors outside the compiled pass: the same bits that ``snapshot_drift`` keeps.

Examples
--------
>>> a, b = signature([1.0, 2.0, 3.0]), signature([-1.0, -2.0, -3.0])
>>> similarity(a, a), similarity(a, b)
(1.0, -1.0)
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stabilitykit.errors import UsageError
from stabilitykit.kernels.simhash import PERIOD, cosine_estimate, hash32, pool

__all__ = ["BITS", "signature", "similarity"]

BITS = 256
"""Of a vector (formulas B5.1: .93 of all decisions at .72 right)."""


def signature(vectors: ArrayLike) -> bytes:
    """Say on which sides of the hyperplanes vectors lie.

    Parameters
    ----------
    vectors
        float[d], or float[layers, d]; read as float32, as the compiled pass reads a snapshot.

    Returns
    -------
    bytes
        32 a layer; b"" where a vector is all zero or not finite, for it has no direction.

    Raises
    ------
    UsageError
        No numbers, or rows of different lengths.
    """
    with np.errstate(over="ignore"):
        try:
            given = np.atleast_2d(np.asarray(vectors, np.float32)).astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise UsageError("vectors are rows of numbers, all of one length") from None
        squares = np.sum(given * given, axis=1)
    if given.ndim != 2 or not np.all((squares > 0) & np.isfinite(squares)):
        return b""
    return np.packbits(given @ _planes(given.shape[1]) > 0, axis=1, bitorder="little").tobytes()


def similarity(first: bytes, second: bytes) -> float:
    """Estimate the cosine of the vectors behind two signatures, the least of the layers; NaN where none can be."""
    if not first or len(first) != len(second):
        return math.nan
    size = BITS // 8
    pairs = (
        (int.from_bytes(first[at : at + size]), int.from_bytes(second[at : at + size]))
        for at in range(0, len(first), size)
    )
    return min(cosine_estimate((a ^ b).bit_count(), BITS) for a, b in pairs)


@lru_cache(maxsize=4)
def _planes(width: int) -> NDArray[Any]:
    """Give the hyperplanes, float64[width, BITS]: the pool from place ``i % PERIOD`` on, with the sign of i."""
    windows = np.lib.stride_tricks.sliding_window_view(np.array(pool(BITS)), BITS)
    signs = np.array([1.0 - 2.0 * (hash32(i) & 1) for i in range(width)])
    return np.asarray(windows[np.arange(width) % PERIOD] * signs[:, None])
