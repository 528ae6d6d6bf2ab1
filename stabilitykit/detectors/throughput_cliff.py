"""A decode rate that fell off a cliff: this turn against the median of this session.

A slow server is slow from the start; a broken one was fast a minute ago. So the rate is compared with the
session's own median, and a collapse is a factor, not a number of tokens per second.

Inputs
------
input
    Decode rate, ``decode_tokens_per_s``. An answer of no or one token has none: leave it out.

Settings
--------
fraction
    A rate below this share of the median is a cliff. The source cites a fall by 28 (85 to below 3 tokens/s,
    A1.1); 1/4 sees it earlier: of 1,500 answers of 11 hosted endpoints the slowest came at .355 of the median
    (``benchmarks/subjects/trends.py``).
warmup
    Known turns before there is a median.
max_freeze
    Turns in the cliff after which the low rate is the usual one.

Outputs
-------
ratio
    Rate / median of the earlier rates that were no cliff.
is_cliff
    The ratio is below the fraction.
baseline
    The median, within 3 %.

Notes
-----
The median comes from a histogram of 256 bins from 1/64 to 1,024 tokens/s (a faster one counts as the fastest), halved
when it holds 2^15 values. A rate is compared before it is counted, and a rate in the cliff is not counted.

When not to use it
------------------
With a server that is shared, others' load halves the rate again and again: use ``itl_breaker`` for that, which
knows the spread. A collapse before the warm-up is over has nothing to be compared with.

References
----------
Formulas A1.1, A4.4.

Examples
--------
80 tokens/s, then 3:

>>> from stabilitykit.detectors.throughput_cliff import THROUGHPUT_CLIFF
>>> from stabilitykit.detectors.trace import trace
>>> turns = trace(THROUGHPUT_CLIFF, [80.0] * 10 + [3.0, 80.0])
>>> [number for number, out in enumerate(turns, start=1) if out["is_cliff"] == 1]
[11]
>>> round(turns[10]["ratio"], 3)
0.037
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
    histogram_halve,
    histogram_size,
    histogram_value,
)
from stabilitykit.kernels.pointers import Block
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["THROUGHPUT_CLIFF", "throughput_cliff_kernel"]

OCTAVES, SLICE_BITS = 16, 4
LOWEST = 2.0**-6
TOP = LOWEST * 2.0 ** (OCTAVES - 1)
HALVE_AT = 1 << 15
SEEN, FROZEN = 0, 1
SLOWEST = LOWEST * (1.0 + 2.0**-SLICE_BITS)
"""End of the first bin: a median in it may be any rate below, so nothing is compared with it."""


@kernel
def usual_rate(f: Block, w: Block, warmup: float) -> float:
    """Give the median of what was learned, NaN when cold or below the range."""
    seen = int(f[SEEN])
    if seen < warmup:
        return math.nan
    median = histogram_value(w, seen - (seen + 1) // 2 + 1, TOP, OCTAVES, SLICE_BITS)
    return median if median >= SLOWEST else math.nan


@kernel
def learn_rate(f: Block, w: Block, first: int, value: float) -> int:
    """Count a rate; gives 0."""
    histogram_add(w, histogram_bin(value, first, OCTAVES, SLICE_BITS), OCTAVES, SLICE_BITS)
    f[SEEN] = float(f[SEEN]) + 1.0
    if float(f[SEEN]) >= HALVE_AT:
        f[SEEN] = float(histogram_halve(w, OCTAVES, SLICE_BITS))
    return 0


@kernel
def throughput_cliff_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Compare with the median, then learn what is no cliff; c is ``fraction, warmup, max_freeze, first bin``."""
    value, out = float(x[io[0]]), io[1]
    base = usual_rate(f, w, float(c[1]))
    ratio = value / base
    is_cliff = ratio < float(c[0])
    x[out] = ratio
    x[out + 1] = math.nan if math.isnan(ratio) else 1.0 if is_cliff else 0.0
    x[out + 2] = base
    if not math.isnan(value):
        f[FROZEN] = float(f[FROZEN]) + 1.0 if is_cliff else 0.0
        if float(f[FROZEN]) >= float(c[2]):
            for i in range((OCTAVES << SLICE_BITS) + OCTAVES):
                w[i] = 0
            f[SEEN] = 0.0
            f[FROZEN] = 0.0
        if float(f[FROZEN]) == 0.0:
            learn_rate(f, w, int(c[3]), value)
    return 0


def _layout(settings: Mapping[str, Any]) -> Layout:
    return Layout(f8=2, u2=histogram_size(OCTAVES, SLICE_BITS))


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    return (
        float(settings["fraction"]),
        float(settings["warmup"]),
        float(settings["max_freeze"]),
        first_bin(LOWEST, SLICE_BITS),
    )


THROUGHPUT_CLIFF = DetectorSpec(
    type="throughput_cliff",
    doc="a decode rate far below the session's own median",
    inputs={"input": "decode_tokens_per_s"},
    settings=(
        SettingSpec(
            "fraction",
            0.25,
            "share of the median below which it is a cliff; the source cites 1/28 (A1.1)",
            "ratio",
            lo=0.0,
            hi=1.0,
        ),
        SettingSpec(
            "warmup",
            8,
            "known turns before there is a median; 8 cost no false alarm on 11 endpoints "
            "(benchmarks/subjects/trends.py)",
            kind="count",
            lo=1,
            hi=10000,
        ),
        SettingSpec(
            "max_freeze",
            50,
            "turns in the cliff after which the rate is the usual one (A4.4)",
            kind="count",
            lo=1,
            hi=65535,
        ),
    ),
    outputs=(
        OutputSpec("ratio", "ratio", "this rate / the session's median", lo=0.0),
        OutputSpec("is_cliff", "bool", "the ratio is below the fraction", kind="bool", lo=0.0, hi=1.0),
        OutputSpec("baseline", "input", "the session's median rate", lo=0.0),
    ),
    kernel=throughput_cliff_kernel,
    layout=_layout,
    config=_config,
    model_bound=True,
)
"""See the module. Another model has another rate, so the median belongs to the model."""
