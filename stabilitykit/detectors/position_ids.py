"""Whether the positions that the model was given can be positions at all, and which is the first that cannot.

``position_offset`` says how far a row is off; this says where it breaks and how. The source's check adds the positions
to the output of the attention, which checks nothing; its third case cannot run.

Inputs
------
positions
    Positions of consecutive tokens (``position_ids``).
cache
    Places in the cache of the same tokens (``cache_positions``), optional: they must be equal.
gaps
    Places in the row, counted from 0, at which a jump is declared (``position_gaps``), optional: behind kept first
    tokens, where the middle of the history was dropped, at the next of several packed sequences.

Settings
--------
max_position
    Positions the model was made for; 163,840 is DeepSeek-V3's.

Outputs
-------
kind
    0: nothing is wrong. Else of the first wrong place: 1 ``length``: there are more or fewer places in the cache than
    positions. 2 ``negative``. 3 ``over``: not below ``max_position``. 4 ``repeated``: the position before again.
    5 ``backwards``: less than the position before. 6 ``gap``: more than one further, and not declared. 7 ``cache``:
    not the place in the cache.
index
    Where in the row; unknown where nothing is wrong, and for a length.
violations_count
    Places that are wrong; with a wrong ``length`` the cache is not compared, but the rest is.

Notes
-----
A row of several sequences is one of each after the other, with declared gaps. That positions are whole numbers in one
row is checked at the door: anything else is a fault ``type_mismatch``. Nothing is remembered.

When not to use it
------------------
On hosted APIs and servers that do not show what the model was given. ``cache`` not for batches that are padded in
front, where positions and places differ by design.

References
----------
Formulas B4.2. J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021.

Examples
--------
A row in order, a token given twice, and a jump that is declared:

>>> from stabilitykit.detectors.position_ids import POSITION_IDS
>>> from stabilitykit.detectors.trace import trace
>>> turns = [{"positions": p, "gaps": g} for p, g in (([4, 5, 6], []), ([4, 5, 5, 6], []), ([0, 1, 90], [2]))]
>>> [(out["kind"], out["index"]) for out in trace(POSITION_IDS, turns)]
[(0.0, nan), (4.0, 2.0), (0.0, nan)]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.pointers import Block
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["KINDS", "POSITION_IDS", "position_ids_kernel"]

KINDS = ("none", "length", "negative", "over", "repeated", "backwards", "gap", "cache")
LENGTH, NEGATIVE, OVER, REPEATED, BACKWARDS, GAP, CACHE = 1, 2, 3, 4, 5, 6, 7


@kernel
def is_declared(gaps: Block, count: int, j: int) -> bool:
    """Tell whether a jump at place j is declared."""
    found = False
    for k in range(count):
        found = found or gaps[k] == j
    return found


@kernel
def position_kind(before: float, position: float, may_jump: bool, limit: float) -> int:
    """Name what is wrong with a position after another; ``before`` is unknown at the start of the row."""
    if position < 0.0:
        return NEGATIVE
    if position >= limit:
        return OVER
    if math.isnan(before) or may_jump or position == before + 1.0:
        return 0
    if position == before:
        return REPEATED
    return BACKWARDS if position < before else GAP


@kernel
def position_ids_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Look at one position after the other; c is ``max_position``."""
    count, places, gaps, out = n[io[0]], n[io[1]], n[io[2]], io[3]
    x[out] = math.nan
    x[out + 1] = math.nan
    x[out + 2] = math.nan
    if count == 0:
        return 0
    first, index, wrong = 0, math.nan, 0
    if places > 0 and places != count:
        first, wrong = LENGTH, 1
    before = math.nan
    for j in range(count):
        position = ids[io[0]][j]
        place = float(position)
        kind = position_kind(before, place, is_declared(ids[io[2]], gaps, j), float(c[0]))
        if kind == 0 and places == count and ids[io[1]][j] != position:
            kind = CACHE
        if kind > 0:
            wrong += 1
        if kind > 0 and first == 0:
            first, index = kind, float(j)
        before = place
    x[out] = float(first)
    x[out + 1] = index
    x[out + 2] = float(wrong)
    return 0


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    return (float(settings["max_position"]),)


POSITION_IDS = DetectorSpec(
    type="position_ids",
    doc="positions that are negative, repeated, out of order, too large or not those of the cache",
    inputs={"positions": "position_ids", "cache": "cache_positions", "gaps": "position_gaps"},
    settings=(SettingSpec("max_position", 163840, "positions the model was made for", kind="count", lo=1, hi=2**53),),
    outputs=(
        OutputSpec("kind", "count", "what is wrong with the first wrong place, 0: nothing", "count", 0, len(KINDS) - 1),
        OutputSpec("index", "count", "where in the row", "count", lo=0.0),
        OutputSpec("violations_count", "count", "places that are wrong", "count", lo=0.0),
    ),
    kernel=position_ids_kernel,
    layout=lambda settings: Layout(),
    config=_config,
)
"""See the module."""
