"""When it will be full: turns until a ratio reaches its limit, by a slope that outliers cannot move.

A server holds its rate from 91 to 96 % of its KV cache and then collapses; a context window refuses the first prompt
that does not fit. Speed tells too late, the trend tells in time.

Inputs
------
input
    A ratio: ``context_usage_ratio`` (per turn), or ``kv_usage_ratio`` (per sample of the replica).
time
    The time of the turn or sample; without it ``seconds_left`` is unknown.

Settings
--------
window
    Values that the slope is taken over.
full
    The ratio that counts as full; 96 % for a KV cache.
soon
    Turns (samples) left at which it is soon.

Outputs
-------
turns_left
    (full - ratio) / slope, 0 when it is full; unknown while nothing grows.
slope_per_turn
    Median of the slopes of all pairs of values in the window (Theil and Sen), from half a window on.
seconds_left
    Turns left times the mean time between the values of the window.
is_soon
    Turns left are at most ``soon``; no while nothing grows.

Notes
-----
Turns are known values: a turn without one is left out. A fall by more than a quarter begins a new window: it was a cut,
which says nothing of how fast the rest fills.

When not to use it
------------------
On a ratio that breathes with the load: the slope over eight samples is then the load's. Take samples far enough apart,
and demand a level beside it (``kv.is_soon and kv_usage_ratio > 80 %``).

References
----------
.. [1] P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau", JASA 63, 1968.
.. [2] "What this data taught" (vLLM runs flat to 96 % and then collapses).

Examples
--------
A context grows by 6 % of the window a turn:

>>> from stabilitykit.detectors.forecast import FORECAST
>>> from stabilitykit.detectors.trace import trace
>>> turns = trace(FORECAST, [0.10 + 0.06 * i for i in range(15)])
>>> [round(out["turns_left"], 1) for out in turns][3:]
[12.0, 11.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
>>> [number for number, out in enumerate(turns, start=1) if out["is_soon"] == 1]
[14, 15]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.ewma import LIMIT
from stabilitykit.kernels.pointers import Block, offset_f8
from stabilitykit.kernels.theil_sen import theil_sen, theil_sen_size
from stabilitykit.signals import TIME, DetectorSpec, Layout, OutputSpec, Reaction, SettingSpec

__all__ = ["FORECAST", "forecast_kernel"]

SEEN, PLACE, RING = 0, 1, 2
"""Places in f; at RING the values, then their times, then scratch for the slopes."""
CUT = 0.75
"""A value below that share of the last is no trend: half of a context is what servers and hosts drop."""
REBASE: dict[str, Reaction] = dict.fromkeys(
    ("reset_context", "trim_context", "rollback_snapshot", "insert_summary", "evict_kv"), "rebase"
)


@kernel
def take_value(f: Block, window: int, value: float, time: float) -> int:
    """Put a value into the ring, a new ring after a cut; gives the number of values."""
    seen, place = int(f[SEEN]), int(f[PLACE])
    if seen > 0 and value < CUT * float(f[RING + (place + window - 1) % window]):
        seen, place = 0, 0
    f[RING + place] = value
    f[RING + window + place] = time
    f[PLACE] = float((place + 1) % window)
    f[SEEN] = float(min(seen + 1, window))
    return min(seen + 1, window)


@kernel
def seconds_each(f: Block, window: int, seen: int, oldest: int) -> float:
    """Give the mean time between the values of the window, NaN when a time is missing or runs backward."""
    newest = (int(f[PLACE]) + window - 1) % window
    span = float(f[RING + window + newest]) - float(f[RING + window + oldest])
    return span / float(seen - 1) if span > 0.0 else math.nan


@kernel
def forecast_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Take a value, extrapolate; c is ``window, full, soon``."""
    value, out, window = float(x[io[0]]), io[2], int(c[0])
    left, slope, each, soon = math.nan, math.nan, math.nan, math.nan
    if abs(value) <= LIMIT:
        seen = take_value(f, window, value, float(x[io[1]]))
        if value >= float(c[1]):
            left = 0.0
        if 2 * seen >= window:
            oldest = int(f[PLACE]) if seen == window else 0
            slope = theil_sen(offset_f8(f, RING), oldest, seen, window, 2 * window)
            each = seconds_each(f, window, seen, oldest)
            if slope > 0.0:
                left = max(float(c[1]) - value, 0.0) / slope
            soon = 0.0
        if left <= float(c[2]):
            soon = 1.0
    x[out] = left if left <= LIMIT else math.nan
    x[out + 1] = slope
    x[out + 2] = left * each if left * each <= LIMIT else math.nan
    x[out + 3] = soon
    return 0


def _layout(settings: Mapping[str, Any]) -> Layout:
    window = int(settings["window"])
    return Layout(f8=RING + 2 * window + theil_sen_size(window))


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    return float(settings["window"]), float(settings["full"]), float(settings["soon"])


FORECAST = DetectorSpec(
    type="forecast",
    doc="turns and seconds until a ratio is full, by a robust slope",
    inputs={"input": "context_usage_ratio", "time": TIME},
    settings=(
        SettingSpec(
            "window",
            8,
            "values of the slope: Theil-Sen bears two outliers among 8",
            kind="count",
            lo=3,
            hi=16,
            shapes_memory=True,
        ),
        SettingSpec(
            "full",
            1.0,
            "ratio that is full: 1 for a window; for vLLM's KV cache 0.96, where the shared data says it collapses",
            "ratio",
            lo=1e-6,
            hi=16.0,
        ),
        SettingSpec(
            "soon",
            3,
            "turns left that are soon; time for a summary on one turn and a retry",
            kind="number",
            lo=0,
            hi=1e6,
        ),
    ),
    outputs=(
        OutputSpec("turns_left", "count", "turns or samples until it is full", lo=0.0, hi=LIMIT),
        OutputSpec("slope_per_turn", "ratio", "growth per turn or sample", lo=-2 * LIMIT, hi=2 * LIMIT),
        OutputSpec("seconds_left", "s", "the same in time", lo=0.0, hi=LIMIT),
        OutputSpec("is_soon", "bool", "at most `soon` are left", kind="bool", lo=0.0, hi=1.0),
    ),
    kernel=forecast_kernel,
    layout=_layout,
    config=_config,
    model_bound=True,
    on_applied=REBASE,
)
"""See the module. Another model has another window, so the trend belongs to the model."""
