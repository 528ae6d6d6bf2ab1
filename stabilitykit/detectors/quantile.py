"""Quantiles of everything seen so far, in 3 KB: the past that a value is compared with.

A log-linear histogram of 24 octaves with 32 slices each. Read before this turn's value is counted,
so a value never takes part in its own threshold. Ranks are nearest ranks, ``ceil(p n)``. The
histogram is within 1.6 % of the true value, and inside a slice values are taken to lie evenly as far as that
guarantee allows; at 2^20 values all counts are halved, so the past
fades and no count can overflow.

What is too early to say is unknown: p50 and p90 need 20 values, p99 needs 100 and p99.9 needs 1,000,
for below ``1/(1-p)`` values the nearest rank is just the greatest value seen. ``is_warm`` tells that
all four are known. A quantile above the range of the histogram is unknown; one below it is given
as the lower end.

On six distributions of 200,000 values P2 erred at p99.9 by up to 15 %, a t-digest of the same size by 4.1 %,
KLL by 66 % and this histogram by 1.1 % (formulas B1.1); benchmarks/subjects/quantiles.py measures it again.

When not to use it
------------------
For the speed of one conversation take ``itl_breaker``, which knows its past after a few turns and does
not learn what is over it. p99 of a session needs a session of 100 turns; the default scope, the
replica, sees the turns of all. A change of level is learned slowly: every past value counts the same.

References
----------
.. [1] G. Tene, "HdrHistogram", 2012 (bins from the leading bits of the value).
.. [2] C. Masson, J. E. Rim, H. K. Lee, "DDSketch", VLDB 2019 (relative-error quantiles).
.. [3] R. J. Hyndman, Y. Fan, "Sample quantiles in statistical packages", 1996, definition 1.

Examples
--------
Transitions of 1.0 to 1.9 us; the 1,002nd takes 5 us. By construction about one healthy turn in a
thousand lies above p99.9: a single spike is a signal, no trip.

>>> from stabilitykit.detectors.quantile import QUANTILE
>>> from stabilitykit.detectors.trace import trace
>>> values = [1 + (i % 10) / 10 for i in range(1001)] + [5.0, 1.0]
>>> turns = trace(QUANTILE, values)
>>> [n for n, (v, out) in enumerate(zip(values, turns), start=1) if v > out["p999"] * 1.016]
[1002]
>>> {name: round(value, 2) for name, value in turns[1001].items()}
{'p50': 1.4, 'p90': 1.81, 'p99': 1.9, 'p999': 1.9, 'is_warm': 1.0}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.histogram import (
    first_bin,
    histogram_add,
    histogram_bin,
    histogram_estimate,
    histogram_halve,
    histogram_size,
)
from stabilitykit.kernels.pointers import Block
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["QUANTILE", "quantile_kernel"]

OCTAVES = 24
SLICE_BITS = 5
COUNT = (OCTAVES << SLICE_BITS) + OCTAVES
"""Place of the number of values, behind the histogram."""
TOO_HIGH = COUNT + 1
"""Place of the number of values above the range."""
HALVE_AT = 1 << 20


@kernel
def quantile_at(h: Block, permille: int, n: int, least: int, c: Block) -> float:
    """Give one quantile of n values, unknown below ``least`` values and above the range."""
    from_top = n - (n * permille + 999) // 1000 + 1
    if n < least or from_top <= int(h[TOO_HIGH]):
        return math.nan
    return histogram_estimate(h, from_top, float(c[2]), OCTAVES, SLICE_BITS)


@kernel
def quantile_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Read four quantiles, then count; c is ``first bin, start of the top octave, of the lowest``."""
    value = float(x[io[0]])
    out = io[1]
    count = int(h[COUNT]) * 1
    x[out] = quantile_at(h, 500, count, 20, c)
    x[out + 1] = quantile_at(h, 900, count, 20, c)
    x[out + 2] = quantile_at(h, 990, count, 100, c)
    x[out + 3] = quantile_at(h, 999, count, 1000, c)
    x[out + 4] = 1.0 if count >= 1000 else 0.0
    if not math.isnan(value):
        histogram_add(h, histogram_bin(value, int(c[0]), OCTAVES, SLICE_BITS), OCTAVES, SLICE_BITS)
        if value >= 2.0 * float(c[1]):
            h[TOO_HIGH] = int(h[TOO_HIGH]) + 1
        h[COUNT] = count + 1
        if count + 1 >= HALVE_AT:
            h[COUNT] = histogram_halve(h, OCTAVES, SLICE_BITS)
            h[TOO_HIGH] = int(h[TOO_HIGH]) >> 1
    return 0


def _layout(settings: Mapping[str, Any]) -> Layout:
    return Layout(u4=histogram_size(OCTAVES, SLICE_BITS) + 2)


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    lowest = 2.0 ** math.floor(math.log2(settings["lowest"]))
    return first_bin(lowest, SLICE_BITS), lowest * 2.0 ** (OCTAVES - 1), lowest


QUANTILE = DetectorSpec(
    type="quantile",
    doc="p50, p90, p99 and p99.9 of all values before this turn",
    inputs={"input": ""},
    settings=(
        SettingSpec(
            "lowest",
            0.01,
            "where the range of 24 octaves begins, in the unit of the input, rounded down to a power of two; "
            "0.01 gives 8 us to 131 s for ms, 8 ns to 131 ms for us",
            lo=1e-9,
            hi=1e9,
            shapes_memory=True,
        ),
    ),
    outputs=(
        OutputSpec("p50", "input", "median", lo=0.0),
        OutputSpec("p90", "input", "nine in ten values are not above it", lo=0.0),
        OutputSpec("p99", "input", "99 in 100 values are not above it", lo=0.0),
        OutputSpec("p999", "input", "999 in 1,000 values are not above it", lo=0.0),
        OutputSpec("is_warm", "bool", "1,000 values were seen: all quantiles are known", kind="bool", lo=0.0, hi=1.0),
    ),
    kernel=quantile_kernel,
    layout=_layout,
    config=_config,
    default_scope="replica",
)
"""See the module. The unit ``input`` of an output stands for the unit of the input signal.

It belongs to the replica unless a pack narrows it: 3 KB and a past of 1,000 turns are more than one
conversation has.
"""
