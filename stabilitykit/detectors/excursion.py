"""Does a series leave the range of its whole past, by level or by a single value? Spikes of latencies and loads.

Two readings of the same signal are held against the p99.9 and the p0.1 of their own past: the level, which is
an exponentially weighted mean, must leave them by ``margin`` of the span between them, and the raw value by
``jump`` of its span. A level is smooth, so a small step beyond all that was says much; a raw value has to go far.
Both ends count, for a server that suddenly answers in no time or takes no load is as broken as a slow one.

Both quantiles are exact, from the 32 greatest and the 32 smallest values kept in order; at 31,000 values every
second of them is given up, so the past fades and memory stays 1 KB. Read before this value is counted.
Below 1,000 values p99.9 is the greatest. Everything is learned, excursions too: a level that stays becomes usual.

When not to use it
------------------
For the speed of one conversation take ``itl_breaker``: it needs twenty turns, not hundreds, and looks at rows of
turns. What repeats every day is no excursion on the second day, and a slow leak never is one (``leak``). An
excursion lasts many values; give the rule a ``cooldown``, or each of them fires.

References
----------
.. [1] A. Lavin, S. Ahmad, "Evaluating real-time anomaly detection algorithms: the Numenta Anomaly Benchmark",
   ICMLA 2015.
.. [2] formulas section 3: two-sided p99.9, and its score beside published detectors'.
.. [3] benchmarks/subjects/spikes.py: scores of this detector and of others on the benchmark's series.

Examples
--------
Latencies of 100 to 119 ms; then 500 ms, and back:

>>> from stabilitykit.detectors.excursion import EXCURSION
>>> from stabilitykit.detectors.trace import trace
>>> turns = trace(EXCURSION, [100.0 + i % 20 for i in range(200)] + [500.0, 110.0])
>>> [n for n, out in enumerate(turns, start=1) if out["is_out"] == 1]
[201]
>>> {name: round(value, 2) for name, value in turns[200].items()}
{'is_out': 1.0, 'level': 130.62, 'high': 111.18, 'low': 100.0, 'value_high': 119.0, 'value_low': 100.0}

The level of the 202nd is still high, but no longer higher than ever.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.ewma import LIMIT
from stabilitykit.kernels.guard import GUARD
from stabilitykit.kernels.pointers import Block
from stabilitykit.kernels.tails import TAIL, tail_bound, tail_take, tail_thin
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["EXCURSION", "excursion_kernel"]

COUNT, LEVEL, RANGES = 0, 1, 2
"""Places in f: values seen, the level; then the ranges of level and value, two tails each, the upper one first."""
THIN_AT = 31_000


@kernel
def is_outside(f: Block, at: int, value: float, margin: float, count: int) -> bool:
    """Tell whether a value leaves the range that begins at ``at``."""
    high = tail_bound(f, at, count)
    low = -tail_bound(f, at + TAIL, count)
    room = (high - low) * margin + (abs(high) + abs(low)) * GUARD
    return value > high + room or value < low - room


@kernel
def take_in(f: Block, at: int, value: float, count: int) -> int:
    """Let a value widen the range that begins at ``at``; gives 0."""
    tail_take(f, at, value, count)
    tail_take(f, at + TAIL, -value, count)
    return 0


@kernel
def count_in(f: Block, level: float, value: float) -> int:
    """Take level and value into their past; gives 0."""
    count = int(f[COUNT]) + 1
    f[LEVEL] = level
    take_in(f, RANGES, level, count)
    take_in(f, RANGES + 2 * TAIL, value, count)
    if count >= THIN_AT:
        for k in range(4):
            tail_thin(f, RANGES + k * TAIL)
        count = count // 2
    f[COUNT] = float(count)
    return 0


@kernel
def excursion_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Compare level and value with their past, then count them; c is ``alpha, margin, jump, warmup``."""
    value = float(x[io[0]])
    out = io[1]
    count = int(f[COUNT])
    known = abs(value) <= LIMIT
    level = math.nan
    if known:
        level = value if count == 0 else float(f[LEVEL]) + float(c[0]) * (value - float(f[LEVEL]))
    for k in range(6):
        x[out + k] = math.nan
    x[out + 1] = level
    if count >= int(c[3]):
        x[out + 2] = tail_bound(f, RANGES, count)
        x[out + 3] = -tail_bound(f, RANGES + TAIL, count)
        x[out + 4] = tail_bound(f, RANGES + 2 * TAIL, count)
        x[out + 5] = -tail_bound(f, RANGES + 3 * TAIL, count)
        if known:
            left = is_outside(f, RANGES, level, float(c[1]), count)
            left = left or is_outside(f, RANGES + 2 * TAIL, value, float(c[2]), count)
            x[out] = 1.0 if left else 0.0
    if known:
        count_in(f, level, value)
    return 0


def _layout(settings: Mapping[str, Any]) -> Layout:
    return Layout(f8=RANGES + 4 * TAIL)


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    return tuple(float(settings[name]) for name in ("alpha", "margin", "jump", "warmup"))


EXCURSION = DetectorSpec(
    type="excursion",
    doc="a level or a value outside the p0.1 to p99.9 of all before it",
    inputs={"input": ""},
    settings=(
        SettingSpec("alpha", 0.05, "weight of a new value in the level; chosen in spikes", lo=1e-6, hi=1.0),
        SettingSpec(
            "margin",
            0.02,
            "share of its span by which the level must leave it; chosen in spikes",
            "ratio",
            lo=0,
            hi=100,
        ),
        SettingSpec(
            "jump", 0.2, "share of its span by which a value must leave it; chosen in spikes", "ratio", lo=0, hi=100
        ),
        SettingSpec(
            "warmup",
            150,
            "values before anything is said; the shortest probation of the benchmark's series is 169",
            kind="count",
            lo=1,
            hi=30000,
        ),
    ),
    outputs=(
        OutputSpec("is_out", "bool", "level or value have left their past", kind="bool", lo=0.0, hi=1.0),
        OutputSpec("level", "input", "weighted mean of the values, this one among them", lo=-LIMIT, hi=LIMIT),
        OutputSpec("high", "input", "p99.9 of the levels before", lo=-LIMIT, hi=LIMIT),
        OutputSpec("low", "input", "p0.1 of the levels before", lo=-LIMIT, hi=LIMIT),
        OutputSpec("value_high", "input", "p99.9 of the values before", lo=-LIMIT, hi=LIMIT),
        OutputSpec("value_low", "input", "p0.1 of the values before", lo=-LIMIT, hi=LIMIT),
    ),
    kernel=excursion_kernel,
    layout=_layout,
    config=_config,
    default_scope="replica",
)
"""It belongs to the replica unless a pack narrows it: a past of hundreds of values is more than a conversation has."""
