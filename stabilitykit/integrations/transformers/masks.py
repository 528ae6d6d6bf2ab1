"""The rows of the masks that a model's attention was given in one turn, put together to one mask.

The forward passes of a turn, the prompt's and one for each token, bring rows of different lengths. A key that did not
exist yet could not be seen, so shorter rows are filled up with 0; keys that a sliding window dropped from the cache in
front, too. What comes out is the mask that the turn would have had in one pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabilitykit.mitigations.masks import first_violation, pack

__all__ = ["MaskRows", "cells_of"]

_ODD_HIDDEN, _ODD_SEEN = -1, 2
"""Cells without a legal value, as the detector ``attention_mask`` reads them: not above 0 hides its key."""


def cells_of(mask: Any) -> NDArray[np.int8]:
    """Read a mask, a tensor[q, k] of any number format, as 0 and 1.

    Booleans and integers are what they are. In an additive mask 0 shows a key; minus infinity, the least number of the
    format and anything below half of it hide one, as the sum of two masks may have it. A cell with any other value is
    odd: -1 when its nearest legal value hides the key, 2 when it shows it (formulas B3.3).
    """
    cells = mask.detach()
    if not cells.is_floating_point():
        return np.asarray(cells.to("cpu").numpy()).astype(np.int64).clip(-1, 2).astype(np.int8)
    values = np.asarray(cells.to("cpu").double().numpy())
    least = _LEAST[str(cells.dtype).rpartition(".")[2]]
    hides = (values == least) | (values == -np.inf)
    found = np.where(values == 0, 1, np.where(values > least / 2, _ODD_SEEN, _ODD_HIDDEN))  # NaN is not greater
    return np.where(hides, 0, found).astype(np.int8)


_LEAST = {
    "float16": -65504.0,
    "bfloat16": -3.3895313892515355e38,
    "float32": float(np.finfo(np.float32).min),
    "float64": float(np.finfo(np.float64).min),
}
"""The least finite number of each format, which numpy does not know of bfloat16."""


class MaskRows:
    """Rows of one turn.

    Parameters
    ----------
    max_cells
        Bound on what is kept, rows times keys; the last rows are kept.
    """

    def __init__(self, max_cells: int) -> None:
        self._max_cells = max_cells
        self._parts: list[tuple[int, NDArray[np.int8]]] = []
        self._misfit: tuple[int, NDArray[np.int8]] | None = None

    def add(self, cached: int, tokens: int, window: int, given: list[NDArray[np.int8]]) -> None:
        """Note the masks of one forward pass.

        Parameters
        ----------
        cached
            Tokens before it.
        tokens
            Tokens that it was given.
        window
            Sliding window of the layers that were looked at, 0: none. Their cache may hold fewer keys than there were.
        given
            Their masks, int8[q, k], without repetitions; the one that is wrong is kept where one of several is.
        """
        total = cached + tokens
        fitted = [_fit(cells, total, min(cached, window - 1) + tokens if window else total) for cells in given]
        for cells, fit in zip(given, fitted, strict=True):
            if fit is None and self._misfit is None:
                self._misfit = cached, cells
        rows = [fit for fit in fitted if fit is not None]
        if rows:
            self._parts.append((total, next((r for r in rows if len(rows) > 1 and _is_wrong(r, window)), rows[0])))
            self._forget(total)

    def _forget(self, keys: int) -> None:
        """Drop the first rows where there are too many."""
        room = max(self._max_cells // keys, 1)
        kept: list[tuple[int, NDArray[np.int8]]] = []
        for total, part in reversed(self._parts):
            if room > 0:
                kept.append((total, part[-room:]))
            room -= len(part)
        self._parts = kept[::-1]

    def signals(self) -> dict[str, Any]:
        """Give the mask of the turn, its rows and the keys before them; nothing where no mask was seen.

        A mask whose length does not fit the cache is given alone, as it is.
        """
        if self._misfit is not None:
            cached, cells = self._misfit
            return _as_signals(cells, cached)
        if not self._parts:
            return {}
        keys = self._parts[-1][0]
        rows = np.vstack([np.pad(part, ((0, 0), (0, keys - part.shape[1]))) for _, part in self._parts])
        return _as_signals(rows, keys - len(rows))


def _as_signals(cells: NDArray[np.int8], cached: int) -> dict[str, Any]:
    return {"attention_mask": cells.astype(np.int64).ravel(), "mask_rows": len(cells), "mask_cached_tokens": cached}


def _fit(cells: NDArray[np.int8], total: int, held: int) -> NDArray[np.int8] | None:
    """Give a mask one column for each token so far, None where its length is none that the cache explains.

    Parameters
    ----------
    held
        Keys of a cache that drops what left the window.
    """
    keys = cells.shape[1]
    if keys > total and not cells[:, total:].any():  # a cache of fixed size, its free places hidden
        return cells[:, :total]
    if keys == total:
        return cells
    return np.pad(cells, ((0, 0), (total - keys, 0))) if keys == held else None


def _is_wrong(cells: NDArray[np.int8], window: int) -> bool:
    rows, keys = cells.shape
    return first_violation(pack(cells > 0), cached=keys - rows, window=window) is not None
