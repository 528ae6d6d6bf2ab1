"""Whether the attention mask lets every token see what it may see, and nothing else.

A row that sees the future, one that lost its past or sees nothing at all (its softmax is NaN) comes from a mask that
was made for other lengths, put together from parts, or damaged. The source's own code for decoding masks new tokens
from themselves. What a mask should be follows from its lengths, so it is compared with that, cell by cell.

Inputs
------
mask
    The mask, row by row, one row a query (``attention_mask``): rows times keys cells.
rows
    Number of its rows (``mask_rows``); without it nothing is known. The last row's query is the last key.
cached
    Tokens in the cache before the first row (``mask_cached_tokens``), optional: with it the number of keys is checked.
valid
    Keys that may be seen at all (``valid_keys``): 0 for padding and for what was evicted; optional, all by default.

Settings
--------
encoding
    ``bool`` (default): 0 and 1. ``f16``: an additive mask in half precision, its cells as 16-bit patterns.
window
    Keys of a sliding window, the query's own included; 0 (default): none.
n_sink
    First keys that stay visible behind the window.

Outputs
-------
kind
    0: nothing is wrong. 1 ``shape``: rows, keys and lengths do not fit each other; nothing else is looked at then.
    Else the first wrong cell, row by row: 2 ``value``: it holds no legal value. 3 ``empty``: its row sees nothing.
    4 ``future``: it sees a later key. 5 ``invalid``: it sees a key that nobody may see. 6 ``window``: it sees behind
    the window. 7 ``diagonal``: a query does not see itself. 8 ``lost``: it does not see a key that the row above
    sees. 9 ``missing``: it does not see a key that it should.
row, column
    Where; of an empty row its own key. Unknown where nothing is wrong, and for a shape.
violations_count
    Cells that are wrong.
odd_count
    Cells that hold no legal value. Each is read as the nearest legal one: -30 in an additive mask sees its key.

Notes
-----
Sixty-four cells are compared at once. Rows of padding queries are not compared: what they see is nobody's business, and
libraries fill them differently. It is known on one turn what is wrong on that turn; nothing is remembered.

When not to use it
------------------
Where the model is given no mask (flash attention with ``is_causal``), on hosted APIs, and for masks that are not causal
by design: prefix language models, packed sequences, trees of speculative decoding.

References
----------
Formulas B3.1 and B3.3. I. Beltagy et al., "Longformer", 2020 (windows); G. Xiao et al., ICLR 2024 (sinks).

Examples
--------
Three rows after one cached token; on turn 2 the last token does not see itself:

>>> from stabilitykit.detectors.attention_mask import ATTENTION_MASK
>>> from stabilitykit.detectors.trace import trace
>>> good = [1, 1, 0, 0,  1, 1, 1, 0,  1, 1, 1, 1]
>>> rows = [{"mask": m, "rows": 3, "cached": 1} for m in (good, [*good[:-1], 0], good[:-1])]
>>> [(out["kind"], out["row"], out["column"]) for out in trace(ATTENTION_MASK, rows)]
[(0.0, nan, nan), (7.0, 2.0, 3.0), (1.0, nan, nan)]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.mask_bits import KINDS, SHAPE, mask_violation
from stabilitykit.kernels.pointers import Block
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["ATTENTION_MASK", "attention_mask_kernel"]

ENCODINGS = ("bool", "f16")


@kernel
def mask_keys(cells: int, rows: float, cached: float, marks: int) -> int:
    """Give the number of keys of a mask, or 0 when its lengths do not fit each other."""
    if rows < 1.0 or rows > cells:
        return 0
    keys = cells // int(rows)
    fits = keys * int(rows) == cells and keys >= int(rows) and (marks == 0 or marks == keys)
    if not fits:
        return 0
    return 0 if not math.isnan(cached) and cached + rows != keys else keys


@kernel
def attention_mask_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Compare the mask with its lengths; c is ``encoding, window, n_sink``."""
    cells, marks, rows, out = n[io[0]], n[io[3]], float(x[io[1]]), io[4]
    for k in range(5):
        x[out + k] = math.nan
    if cells == 0 or math.isnan(rows):
        return 0
    keys = mask_keys(cells, rows, float(x[io[2]]), marks)
    if keys == 0:
        x[out] = float(SHAPE)
        return 0
    window, sinks, is_half = int(c[1]), int(c[2]), float(c[0]) == 1.0
    kind, row, column, wrong, odd = mask_violation(
        ids[io[0]], int(rows), keys, ids[io[3]], marks, window, sinks, is_half
    )
    x[out] = float(kind)
    if kind > 0:
        x[out + 1] = float(row)
        x[out + 2] = float(column)
    x[out + 3] = float(wrong)
    x[out + 4] = float(odd)
    return 0


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    return float(ENCODINGS.index(settings["encoding"])), float(settings["window"]), float(settings["n_sink"])


ATTENTION_MASK = DetectorSpec(
    type="attention_mask",
    doc="a mask that lets a token see what it may not see, or hides what it may",
    inputs={
        "mask": "attention_mask",
        "rows": "mask_rows",
        "cached": "mask_cached_tokens",
        "valid": "valid_keys",
    },
    settings=(
        SettingSpec("encoding", "bool", "what a cell holds", "enum", "enum", values=ENCODINGS),
        SettingSpec("window", 0, "keys of a sliding window; 0: none", kind="count", lo=0, hi=2**31),
        SettingSpec("n_sink", 0, "first keys visible behind the window", kind="count", lo=0, hi=65536),
    ),
    outputs=(
        OutputSpec("kind", "count", "what is wrong with the first wrong cell, 0: nothing", "count", 0, len(KINDS) - 1),
        OutputSpec("row", "count", "its row", "count", lo=0.0),
        OutputSpec("column", "count", "its column, a key", "count", lo=0.0),
        OutputSpec("violations_count", "count", "cells that are wrong", "count", lo=0.0),
        OutputSpec("odd_count", "count", "cells that hold no legal value", "count", lo=0.0),
    ),
    kernel=attention_mask_kernel,
    layout=lambda settings: Layout(),
    config=_config,
)
"""See the module."""
