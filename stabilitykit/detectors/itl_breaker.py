"""Is the gap between tokens over its own baseline? The sensor of the latency breaker.

Says over or not, one turn at a time. How many turns in a row trip (``for: 3 turns``), when to probe
again and when to close is the business of a pack's rule and machine.

``p90`` (default): the baseline is the median of the conversation's own turns, the threshold
``max(p50 * (1 + drift_factor), p90 * 1.2)``. A mean is no baseline: on ten real endpoints up to 35 %
of healthy turns lie above 1.2 times the median, and N = 3 turns in a row trip less than once in
1,000 turns only if single turns exceed with q <= 0.104, hence p90 (formulas A4.4).
``ewma``: threshold ``mean * (1 + drift_factor)``. ``static``: threshold
``baseline_ms * (1 + drift_factor)``, exact, the source document's rule.

Values over the threshold are not learned, else the fault becomes the baseline; after ``max_freeze``
of them in a row the memory starts afresh, else a lasting change of level trips for ever. An unknown
turn changes nothing. Before ``warmup`` known values, or when the median lies below the range of the
histogram, ``baseline_ms`` serves if configured; else all outputs are unknown.

When not to use it
------------------
A speed promised to users is a comparison in a rule (``itl_ms > 200 ms``). Answers of a few tokens
have no steady gap. Times that grow with the prompt (first token, prefill) need ``method: ewma`` and a
generous ``drift_factor``, or the growth itself is over.

References
----------
.. [1] M. Nygard, "Release It!", 2007 (circuit breaker).
.. [2] benchmarks/subjects/itl_breaker_defaults.py: with three turns in a row, false trips in 1,000 healthy
   turns of ten endpoints: p90 2.3, static mean of 20 turns 5.9, ewma 28; a step of 2 is seen after 3 turns.

Examples
--------
Turns at about 40 ms, one without a value, then a slowdown; over from turn 23 on:

>>> from stabilitykit.detectors.itl_breaker import ITL_BREAKER
>>> from stabilitykit.detectors.trace import trace
>>> turns = trace(ITL_BREAKER, [38.0, 42.0] * 10 + [None, 44.0, 120.0, 125.0, 130.0])
>>> [n for n, out in enumerate(turns, start=1) if out["is_over"] == 1]
[23, 24, 25]
>>> {name: round(value, 1) for name, value in turns[22].items()}
{'is_over': 1.0, 'baseline_ms': 43.0, 'threshold_ms': 51.6, 'over_ratio': 2.3}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.ewma import COUNT, LIMIT, MEAN, VARIANCE, ewma_update
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

__all__ = ["ITL_BREAKER", "itl_breaker_kernel"]

METHODS = ("p90", "ewma", "static")
P90, EWMA, STATIC = 0.0, 1.0, 2.0
OCTAVES = 16
SLICE_BITS = 4
HALVE_AT = 1 << 15
"""Keeps uint16 counts from overflowing."""
FROZEN = 3
"""Place of the number of values over the threshold in a row, behind the three of the mean."""
P90_FACTOR = 1.2
LEAST_MS = 1e-9
"""A smaller baseline is no baseline."""
GUARD = 1e-9
"""A statistical bound must be exceeded by this relative margin: exact ties are rounding, not news."""


@kernel
def learn(f: Block, w: Block, c: Block, value: float) -> int:
    """Take one value into the baseline; gives 0."""
    if float(c[0]) == EWMA:
        return ewma_update(f, value, float(c[6]))
    histogram_add(w, histogram_bin(value, int(c[4]), OCTAVES, SLICE_BITS), OCTAVES, SLICE_BITS)
    f[COUNT] = float(f[COUNT]) + 1.0
    if float(f[COUNT]) >= HALVE_AT:
        f[COUNT] = float(histogram_halve(w, OCTAVES, SLICE_BITS))
    return 0


@kernel
def start_afresh(f: Block, w: Block, c: Block) -> int:
    """Forget the baseline; gives 0."""
    f[COUNT] = 0.0
    f[MEAN] = 0.0
    f[VARIANCE] = 0.0
    if float(c[0]) == P90:
        for i in range((OCTAVES << SLICE_BITS) + OCTAVES):
            w[i] = 0
    return 0


@kernel
def learned_baseline(f: Block, w: Block, c: Block) -> float:
    """Give the mean or the median of what was learned, 0 when cold or below the range."""
    if float(c[0]) == STATIC or float(f[COUNT]) < float(c[3]):
        return 0.0
    if float(c[0]) == EWMA:
        return float(f[MEAN])
    n = int(f[COUNT])
    base = histogram_value(w, n - (n + 1) // 2 + 1, float(c[5]), OCTAVES, SLICE_BITS)
    return base if base >= float(c[7]) else 0.0


@kernel
def upper_bound(f: Block, w: Block, c: Block, base: float) -> float:
    """Give the threshold over a learned baseline."""
    bound = base * (1.0 + float(c[1]))
    if float(c[0]) == P90:
        n = int(f[COUNT])
        p90 = histogram_value(w, n - (9 * n + 9) // 10 + 1, float(c[5]), OCTAVES, SLICE_BITS)
        bound = max(bound, p90 * P90_FACTOR)
    return bound


@kernel
def itl_breaker_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Compare with the threshold, then learn what is not over it.

    c is ``method, drift_factor, baseline_ms, warmup, first bin, start of the top octave, alpha,
    end of the first bin, max_freeze``.
    """
    value = float(x[io[0]])
    out = io[1]
    base = learned_baseline(f, w, c)
    guard = 0.0
    bound = 0.0
    is_learned = base >= LEAST_MS
    if is_learned:
        bound = upper_bound(f, w, c, base)
        guard = GUARD
    else:
        base = float(c[2])
        bound = base * (1.0 + float(c[1]))
    known = abs(value) <= LIMIT
    has_base = base >= LEAST_MS
    over = known and has_base and value > bound + bound * guard
    x[out] = (1.0 if over else 0.0) if known and has_base else math.nan
    x[out + 1] = base if has_base else math.nan
    x[out + 2] = bound if has_base else math.nan
    x[out + 3] = value / bound if known and has_base else math.nan
    if known and float(c[0]) != STATIC:
        f[FROZEN] = float(f[FROZEN]) + 1.0 if over and is_learned else 0.0
        if float(f[FROZEN]) >= float(c[8]):
            start_afresh(f, w, c)
            f[FROZEN] = 0.0
            learn(f, w, c, value)
        elif float(f[FROZEN]) == 0.0:
            learn(f, w, c, value)
    return 0


def _layout(settings: Mapping[str, Any]) -> Layout:
    if settings["method"] == "static":
        return Layout()
    return Layout(f8=4, u2=histogram_size(OCTAVES, SLICE_BITS) if settings["method"] == "p90" else 0)


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    lowest = 2.0 ** math.floor(math.log2(settings["lowest_ms"]))
    return (
        float(METHODS.index(settings["method"])),
        float(settings["drift_factor"]),
        float(settings["baseline_ms"]),
        float(settings["warmup"]),
        first_bin(lowest, SLICE_BITS),
        lowest * 2.0 ** (OCTAVES - 1),
        float(settings["alpha"]),
        lowest * (1 + 2.0**-SLICE_BITS),
        float(settings["max_freeze"]),
    )


ITL_BREAKER = DetectorSpec(
    type="itl_breaker",
    doc="inter-token latency against the conversation's own baseline",
    inputs={"input": "itl_ms"},
    settings=(
        SettingSpec(
            "method", "p90", "where the baseline comes from", "enum", "enum", values=METHODS, shapes_memory=True
        ),
        SettingSpec(
            "drift_factor", 0.2, "tolerated share over the baseline; 0.2 is the source's", "ratio", lo=0.0, hi=100.0
        ),
        SettingSpec(
            "warmup", 20, "known turns before the learned baseline holds; formulas A4.4", kind="count", lo=1, hi=10000
        ),
        SettingSpec("baseline_ms", 0.0, "static baseline, also used while cold; 0 is none", "ms", lo=0.0, hi=1e9),
        SettingSpec(
            "max_freeze",
            50,
            "turns over in a row before the level is learned anew; 20 does as well on healthy streams",
            kind="count",
            lo=1,
            hi=30000,
        ),
        SettingSpec("alpha", 0.05, "weight of a new value, ewma only; as measured in formulas A4.4", lo=1e-6, hi=1.0),
        SettingSpec(
            "lowest_ms",
            0.25,
            "where the histogram's 16 octaves begin, rounded down to a power of two: to 16 s",
            "ms",
            lo=1e-6,
            hi=1e6,
            shapes_memory=True,
        ),
    ),
    outputs=(
        OutputSpec("is_over", "bool", "over the threshold on this turn", kind="bool", lo=0.0, hi=1.0),
        OutputSpec("baseline_ms", "ms", "median, mean or static baseline before this turn", lo=0.0),
        OutputSpec("threshold_ms", "ms", "what this turn is compared with", lo=0.0),
        OutputSpec("over_ratio", "ratio", "this turn / threshold: above 1 when over", lo=0.0),
    ),
    kernel=itl_breaker_kernel,
    layout=_layout,
    config=_config,
    model_bound=True,
    on_applied={"lower_clocks": "rebase", "quantize_kv": "rebase"},
)
"""See the module. Lower clocks and a quantised cache slow decoding down by our own doing: rebase.
"""
