"""Attention masks as bits, 64 keys to a word: what a row should be, and where one is not.

The row of the query at position p sees key j when j <= p, unless a sliding window of w keys has left j behind
(j <= p - w) and j is not one of the first keys that are kept as sinks; and only if the key is valid at all
(formulas B3.1). What a row should be therefore follows from three numbers and is never stored.
"""

from __future__ import annotations

import numpy as np

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.bits import popcount64
from stabilitykit.kernels.mask_values import canonical_bool, canonical_half
from stabilitykit.kernels.pointers import Block

__all__ = [
    "DIAGONAL",
    "EMPTY",
    "FUTURE",
    "INVALID",
    "KINDS",
    "LOST",
    "MISSING",
    "SHAPE",
    "VALUE",
    "WINDOW",
    "allowed_row",
    "allowed_word",
    "lowest_bit",
    "mask_violation",
    "violation_kind",
]

KINDS = ("none", "shape", "value", "empty", "future", "invalid", "window", "diagonal", "lost", "missing")
"""What can be wrong with a mask, by its number."""
SHAPE, VALUE, EMPTY, FUTURE, INVALID, WINDOW, DIAGONAL, LOST, MISSING = 1, 2, 3, 4, 5, 6, 7, 8, 9

_NONE, _ONE, _ALL = np.uint64(0), np.uint64(1), np.uint64(2**64 - 1)


def allowed_row(position: int, window: int = 0, sinks: int = 0) -> int:
    """Give all keys that the query at a position may see, key j as bit j of one integer.

    Examples
    --------
    >>> bin(allowed_row(5)), bin(allowed_row(5, window=2, sinks=1))
    ('0b111111', '0b110001')
    """
    row = (1 << (position + 1)) - 1
    if window > 0:
        behind = (1 << max(position - window + 1, 0)) - 1
        row &= ~behind | ((1 << sinks) - 1)
    return row


@kernel
def low_bits(k: int) -> Block:
    """Give the word whose k lowest bits are set, none for a negative k, all from 64 on."""
    if k <= 0:
        return _NONE
    return _ALL if k >= 64 else (_ONE << np.uint64(k)) - _ONE


@kernel
def allowed_word(first: int, position: int, window: int, sinks: int) -> Block:
    """Give the keys ``first`` to ``first + 63`` that the query at a position may see."""
    word = low_bits(position + 1 - first)
    if window > 0:
        word = word & (~low_bits(position - window + 1 - first) | low_bits(sinks - first))
    return word


@kernel
def packed_word(cells: Block, at: int, count: int, is_half: bool) -> tuple[Block, Block]:
    """Pack up to 64 cells from ``at`` on.

    Returns
    -------
    seen, odd
        The cells whose nearest legal value lets a key be seen, and the cells that hold no legal value.
    """
    seen, odd = _NONE, _NONE
    for j in range(count):
        cell = cells[at + j]
        bit = _ONE << np.uint64(j)
        legal = canonical_half(cell) if is_half else canonical_bool(cell)
        if (legal == 0) == is_half:
            seen = seen | bit
        if legal != cell:
            odd = odd | bit
    return seen, odd


@kernel
def valid_word(valid: Block, known: int, at: int, count: int) -> Block:
    """Pack up to 64 marks of valid keys; without marks all keys are valid."""
    if known == 0:
        return low_bits(count)
    word = _NONE
    for j in range(count):
        if valid[at + j] != 0:
            word = word | (_ONE << np.uint64(j))
    return word


@kernel
def lowest_bit(word: Block) -> int:
    """Give the place of the lowest bit that is set."""
    return popcount64((word & (~word + _ONE)) - _ONE) if word != _NONE else 64


@kernel
def violation_kind(j: int, position: int, sees: bool, is_valid: bool, above_sees: bool) -> int:
    """Name what is wrong with a cell that is not what it should be."""
    if sees and j > position:
        return FUTURE
    if sees:
        return WINDOW if is_valid else INVALID
    if j == position:
        return DIAGONAL
    return LOST if above_sees else MISSING


@kernel
def row_violation(
    cells: Block, r: int, rows: int, keys: int, valid: Block, known: int, window: int, sinks: int, is_half: bool
) -> tuple[int, int, int, int]:
    """Compare one row with what it should be; gives kind and column of its first wrong cell, wrong and odd cells."""
    position = keys - rows + r
    is_padding = known > 0 and valid[position] == 0
    is_empty, kind, column, wrong, odd_cells = True, 0, 0, 0, 0
    for first in range(0, keys, 64):
        count = min(keys - first, 64)
        marks = valid_word(valid, known, first, count)
        seen, odd = packed_word(cells, r * keys + first, count, is_half)
        off = _NONE if is_padding else seen ^ (allowed_word(first, position, window, sinks) & marks)
        is_empty = is_empty and seen == _NONE
        odd_cells += popcount64(odd)
        wrong += popcount64(off | odd)
        if kind == 0 and (off | odd) != _NONE:
            bit = lowest_bit(off | odd)
            place = _ONE << np.uint64(bit)
            column = first + bit
            above = _NONE
            if r > 0:
                above, _odd = packed_word(cells, (r - 1) * keys + column, 1, is_half)
            kind = VALUE
            if (odd & place) == _NONE:
                sees, may = (seen & place) != _NONE, (marks & place) != _NONE
                kind = violation_kind(column, position, sees, may, above != _NONE)
    if is_empty and not is_padding:
        kind, column = EMPTY, position
    return kind, column, wrong, odd_cells


@kernel
def mask_violation(
    cells: Block, rows: int, keys: int, valid: Block, known: int, window: int, sinks: int, is_half: bool
) -> tuple[int, int, int, int, int]:
    """Compare a mask, row by row, with what it should be.

    Parameters
    ----------
    cells
        ``rows * keys`` cells, row by row; the last row's query is the last key.
    valid, known
        A mark for each key, 0 for one that nobody may see, and their number (0: all are valid). The row of a query
        that is no valid key itself (padding) is nobody's and may hold anything legal.

    Returns
    -------
    kind, row, column, violations, odd
        The first cell, row by row, that is wrong and why (kind 0: none; an empty row counts at its own key), how
        many cells are wrong, and how many hold no legal value.
    """
    kind, row, column, wrong, odd_cells = 0, 0, 0, 0, 0
    for r in range(rows):
        found, at, off, odd = row_violation(cells, r, rows, keys, valid, known, window, sinks, is_half)
        wrong += off
        odd_cells += odd
        if kind == 0 and found > 0:
            kind, row, column = found, r, at
    return kind, row, column, wrong, odd_cells
