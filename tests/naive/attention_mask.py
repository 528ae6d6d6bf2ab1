"""The slow obvious twin of attention_mask: the mask there should be, written out with sets."""

from __future__ import annotations

import math

import numpy as np

NONE, SHAPE, VALUE, EMPTY, FUTURE, INVALID, WINDOW, DIAGONAL, LOST, MISSING = range(10)


def wanted_keys(position, window, sinks):
    """Give the keys that the query at a position may see."""
    return {j for j in range(position + 1) if not window or j > position - window or j < sinks}


def nearest(cell, encoding):
    """Give the legal value nearest to a cell."""
    if encoding == "bool":
        return min((0, 1), key=lambda legal: abs(cell - legal))
    value = float(np.uint16(cell).view(np.float16)) if 0 <= cell <= 0xFFFF else math.nan
    if math.isnan(value) or value == -math.inf:
        return 0xFC00
    return 0xFBFF if abs(value + 65504) <= abs(value) and value < 0 else 0


class NaiveAttentionMask:
    """One mask at a time."""

    def __init__(self, settings):
        self.settings = settings

    def reset(self):
        """Nothing is remembered."""

    def update(self, inputs):
        """Take one turn."""
        cells, rows, cached, valid = (inputs.get(k) for k in ("mask", "rows", "cached", "valid"))
        out = dict.fromkeys(("kind", "row", "column", "violations_count", "odd_count"))
        if not cells or rows is None:
            return out
        keys = len(cells) / int(rows) if rows >= 1 else 0
        fits = keys == int(keys) and keys >= int(rows) >= 1 and (not valid or len(valid) == keys)
        if not fits or (cached is not None and cached + rows != keys):
            return out | {"kind": float(SHAPE)}
        return out | self.compare([cells[i : i + int(keys)] for i in range(0, len(cells), int(keys))], valid)

    def compare(self, grid, valid):
        """Go through the rows."""
        encoding, keys = self.settings["encoding"], len(grid[0])
        seeing = 1 if encoding == "bool" else 0
        odd = {(i, j) for i, row in enumerate(grid) for j, cell in enumerate(row) if nearest(cell, encoding) != cell}
        sees = [{j for j, cell in enumerate(row) if nearest(cell, encoding) == seeing} for row in grid]
        may = {j for j in range(keys) if not valid or valid[j]}
        first, wrong = None, set(odd)
        for i, row in enumerate(sees):
            position = keys - len(grid) + i
            padding = position not in may
            want = row if padding else wanted_keys(position, self.settings["window"], self.settings["n_sink"]) & may
            off = {(i, j) for j in row ^ want}
            wrong |= off
            if not row and not padding:
                first = first or (EMPTY, i, position)
            elif off or any(i == a for a, _ in odd):
                j = min(j for a, j in off | odd if a == i)
                first = first or (VALUE if (i, j) in odd else self.name(i, j, position, sees, may), i, j)
        kind, at, column = first or (NONE, None, None)
        return {"kind": kind, "row": at, "column": column, "violations_count": len(wrong), "odd_count": len(odd)}

    def name(self, i, j, position, sees, may):
        """Say what is wrong with a cell."""
        if j in sees[i]:
            return FUTURE if j > position else INVALID if j not in may else WINDOW
        return DIAGONAL if j == position else LOST if i and j in sees[i - 1] else MISSING
