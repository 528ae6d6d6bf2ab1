"""Attention masks for decoding, bit-packed, and their repair: recomputed from lengths, never patched.

A row of a mask is one whole number, key j its bit j: a row of 8,192 keys takes 1 KiB, and two are compared at once.
What a row should be follows from its position, the sliding window and the sinks alone (formulas B3.1).

Examples
--------
A token is added to a cache of three, with a window of two keys and one sink:

>>> rows = mask_rows(cached=3, rows=2, window=2, sinks=1)
>>> [bin(row) for row in rows], bin(next_row(rows[-1], position=5, window=2, sinks=1))
(['0b1101', '0b11001'], '0b110001')
>>> first_violation([0b1101, 0b11011], cached=3, window=2, sinks=1)
Violation(kind='window', row=1, column=1)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import index
from typing import Any

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from stabilitykit.errors import UsageError
from stabilitykit.kernels.mask_bits import EMPTY, KINDS, allowed_row, violation_kind
from stabilitykit.kernels.mask_values import canonical_half
from stabilitykit.mitigations.whole_numbers import whole_number

__all__ = [
    "Repair",
    "Violation",
    "first_violation",
    "mask_rows",
    "next_row",
    "pack",
    "repair_mask",
    "row_parity",
    "unpack",
]


@attrs.frozen
class Violation:
    """The first cell, row by row, that is not what it should be.

    Parameters
    ----------
    kind
        ``empty``, ``future``, ``invalid``, ``window``, ``diagonal``, ``lost`` or ``missing``; see the detector
        ``attention_mask``.
    row, column
        Where; of an empty row its own key.
    """

    kind: str
    row: int
    column: int


def mask_rows(*, cached: int, rows: int, window: int = 0, sinks: int = 0, valid: int | None = None) -> tuple[int, ...]:
    """Give the rows of the next queries after so many cached tokens.

    Parameters
    ----------
    window
        Keys of a sliding window, the query's own included; 0: none.
    sinks
        First keys that stay visible behind the window.
    valid
        Keys that may be seen at all, as bits; None: all. A query whose own key is not valid (padding) sees itself, for
        an empty row has no softmax.

    Raises
    ------
    UsageError
        A length that is no whole number from 0 on, or ``valid`` that is no whole number.
    """
    cached, rows = whole_number(cached, "cached"), whole_number(rows, "rows")
    window, sinks = whole_number(window, "window"), min(whole_number(sinks, "sinks"), cached + rows)
    if valid is not None:
        (valid,) = _rows([valid])
    found = (allowed_row(cached + r, window, sinks) for r in range(rows))
    if valid is None:
        return tuple(found)
    return tuple(row & valid if valid >> cached + r & 1 else 1 << cached + r for r, row in enumerate(found))


def next_row(before: int, position: int, *, window: int = 0, sinks: int = 0) -> int:
    """Give the row of the query at a position from the one before: one key more, and one that leaves the window.

    Raises
    ------
    UsageError
        A row that is no whole number, or a position, window or sinks that are none from 0 on.
    """
    (before,), position = _rows([before]), whole_number(position, "position")
    window, sinks = whole_number(window, "window"), whole_number(sinks, "sinks")
    row = before | 1 << position
    leaving = position - window
    return row & ~(1 << leaving) if window > 0 and leaving >= sinks else row


def first_violation(
    rows: Sequence[int], *, cached: int, window: int = 0, sinks: int = 0, valid: int | None = None
) -> Violation | None:
    """Name the first wrong cell of packed rows, None where all are right; rows of padding are not compared.

    Raises
    ------
    UsageError
        As ``mask_rows``, or rows that are no whole numbers.
    """
    rows = _rows(rows)
    wanted = mask_rows(cached=cached, rows=len(rows), window=window, sinks=sinks, valid=valid)
    for r, (row, want) in enumerate(zip(rows, wanted, strict=True)):
        position = cached + r
        off = row ^ want
        if not off or (valid is not None and not valid >> position & 1):
            continue
        if row == 0:
            return Violation(KINDS[EMPTY], r, position)
        j = (off & -off).bit_length() - 1
        may, above = valid is None or bool(valid >> j & 1), bool(r and rows[r - 1] >> j & 1)
        return Violation(KINDS[violation_kind(j, position, bool(row >> j & 1), may, above)], r, j)
    return None


def pack(mask: ArrayLike) -> tuple[int, ...]:
    """Pack a mask, bool or whole numbers [q, k], into one number a row.

    Raises
    ------
    UsageError
        Not two dimensions; floats, for an additive 0 shows its key.
    """
    given = np.asarray(mask)
    if given.ndim != 2 or given.dtype.kind not in "biu":
        raise UsageError("a mask to pack is bool or whole numbers in two dimensions")
    packed = np.packbits(given.astype(bool), axis=1, bitorder="little")
    return tuple(int.from_bytes(row.tobytes(), "little") for row in packed)


def unpack(rows: Sequence[int], keys: int) -> NDArray[np.bool_]:
    """Give packed rows as bool[q, k].

    Raises
    ------
    UsageError
        Rows that are no whole numbers, or have more keys.
    """
    size, rows = (whole_number(keys, "keys") + 7) // 8, _rows(rows)
    if any(row >> keys for row in rows):  # of a negative one something always is left
        raise UsageError(f"a row has keys beyond the {keys} there are")
    octets = np.frombuffer(b"".join(row.to_bytes(size, "little") for row in rows), np.uint8).reshape(len(rows), size)
    return np.unpackbits(octets, axis=1, count=keys, bitorder="little").astype(bool)


def _rows(given: Sequence[int]) -> list[int]:
    try:
        return [index(row) for row in given]
    except TypeError:
        raise UsageError("packed rows are whole numbers") from None


def row_parity(mask: ArrayLike) -> NDArray[Any]:
    """Give the parity of each row, the exclusive or of its cells: kept when a mask is made, compared before its use.

    It sees every odd number of flips of one bit in a row; what it cannot see the other stages of ``repair_mask`` do.

    Raises
    ------
    UsageError
        A mask that is not two-dimensional, or of another number format.
    """
    return np.asarray(np.bitwise_xor.reduce(_patterns(_checked(mask)), axis=1))


def _checked(mask: ArrayLike) -> NDArray[Any]:
    given = np.asarray(mask)
    if given.ndim != 2:
        raise UsageError(f"a mask has two dimensions, not {given.ndim}")
    if given.dtype.kind not in "biuf" or given.dtype.itemsize > 8:
        raise UsageError(f"a mask is bool, whole numbers, float16, float32 or float64, not {given.dtype}")
    return given


def _patterns(mask: ArrayLike) -> NDArray[Any]:
    """See the cells of a mask of floats as their patterns and booleans as 0 and 1."""
    given = np.asarray(mask)
    if given.dtype.kind == "f":
        native = given.astype(given.dtype.newbyteorder("="))
        return native.view(f"u{native.itemsize}")
    return given.astype(np.uint8) if given.dtype == bool else given


@lru_cache(maxsize=1)
def _legal_halves() -> NDArray[np.uint16]:
    return np.array([canonical_half(pattern) for pattern in range(65536)], np.uint16)


def _legal(given: NDArray[Any]) -> NDArray[Any]:
    """Give the legal value next to each cell: of an additive mask 0, minus infinity or the least of its format."""
    if given.dtype.kind != "f":
        return np.asarray(given > 0).astype(given.dtype)
    if given.dtype.itemsize == 2:
        return np.asarray(_legal_halves()[_patterns(given)]).view(np.float16)
    least = np.finfo(given.dtype).min
    legal = np.where(given > least / 2, 0.0, least)
    legal[np.isnan(given) | np.isneginf(given)] = -np.inf  # a NaN that is added spoils its whole row
    return legal


@attrs.frozen(eq=False)
class Repair:
    """A mask that is right, and what was found on the way, stage by stage.

    Parameters
    ----------
    mask
        Recomputed, in the number format of the one given.
    parity_rows
        Rows whose parity is not the one that was kept (0 when none was).
    odd_cells
        Cells that held no legal value.
    wrong_cells
        Cells that, read as the nearest legal value, showed or hid a key wrongly; all of a mask of another shape.
    """

    mask: NDArray[Any]
    parity_rows: int
    odd_cells: int
    wrong_cells: int

    @property
    def was_damaged(self) -> bool:
        """Whether any stage found something."""
        return self.parity_rows + self.odd_cells + self.wrong_cells > 0


def repair_mask(
    mask: ArrayLike,
    *,
    cached: int,
    window: int = 0,
    sinks: int = 0,
    valid: int | None = None,
    parity: ArrayLike | None = None,
) -> Repair:
    """Check a mask in three stages and give the one that its lengths ask for.

    First the parity of its rows, if one was kept; then every cell against the legal values of its number format; then
    what the cells mean against the reference. The result always is the reference: a bit is never patched, for what is
    damaged once may be damaged elsewhere (formulas B3.3).

    Parameters
    ----------
    mask
        Additive, float16, float32 or float64[q, k] in any byte order: 0 where a key is seen, minus infinity or the
        least of the format where it is not. Or bool or integers, [q, k], 1 and 0. Floats are never read as 1 and 0:
        an additive 1 hides nothing.
    parity
        ``row_parity`` of the mask when it was made.

    Raises
    ------
    UsageError
        A mask that is not two-dimensional, or of another number format; lengths as ``mask_rows``.

    Examples
    --------
    >>> damaged = np.array([[1, 0, 0], [1, 1, 0], [1, 4, 1]])
    >>> found = repair_mask(damaged, cached=0)
    >>> found.mask.tolist(), found.odd_cells, found.wrong_cells
    ([[1, 0, 0], [1, 1, 0], [1, 1, 1]], 1, 0)
    """
    given, cached = _checked(mask), whole_number(cached, "cached")
    is_additive = given.dtype.kind == "f"
    rows, keys = len(given), cached + len(given)
    changed = 0
    if parity is not None:
        kept = np.asarray(parity)
        changed = int((row_parity(given) != kept).sum()) if kept.shape == (rows,) else rows
    legal = _legal(given)
    sees = unpack(mask_rows(cached=cached, rows=rows, window=window, sinks=sinks, valid=valid), keys)
    wrong = sees.size
    if given.shape == (rows, keys):
        is_own = np.array([valid is None or bool(valid >> cached + r & 1) for r in range(rows)], bool)
        shown = (legal == 0) == is_additive
        wrong = int((shown ^ sees)[is_own].sum())
    odd = _patterns(legal) != _patterns(given) if given.dtype.kind == "f" and given.itemsize == 2 else legal != given
    right = np.where(sees, 0.0, -np.inf) if is_additive else sees
    return Repair(right.astype(given.dtype), changed, int(odd.sum()), wrong)
