"""Is the gap between tokens over its own baseline? The sensor of the latency breaker.

Says over or not, one turn at a time. How many turns in a row trip (``for: 3 turns``), when to probe
again and when to close is the business of a pack's rule and machine.

``shewhart_cusum`` (default): two tests on the logarithm of the value, whose spread comes from the
conversation's own p90, so that a restless endpoint needs more evidence than a calm one. By itself a turn is
over above ``max(p50 * (1 + drift_factor), p90 * sqrt(p90 / p50))``; together with those before it, when the
log-likelihood ratio of "``step`` times as slow" against "as usual", summed and kept at 0 or above, exceeds
``evidence``. One turn adds at most half of that and takes at most 1 away, so no single value is enough. Both
limits are wider while few turns are known: log(p90 / p50) by 8 / n, ``evidence`` by 20 / n.
``p90``: threshold ``max(p50 * (1 + drift_factor), p90 * 1.2)``. A mean is no baseline: on ten real endpoints
up to 35 % of healthy turns lie above 1.2 times the median, and N = 3 turns in a row trip less than once in
1,000 turns only if single turns exceed with q <= 0.104, hence p90 (formulas A4.4).
``ewma``: threshold ``mean * (1 + drift_factor)``. ``static``: threshold ``baseline_ms * (1 + drift_factor)``,
exact, the source document's rule.

Values that are over are not learned (``shewhart_cusum``: once 18 are known, from the third in a row on, else
p90 stays below what is usual), else the fault becomes the baseline; after ``max_freeze``
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
.. [2] J. M. Lucas, "Combined Shewhart-CUSUM quality control schemes", Journal of Quality Technology 14(2), 1982.
.. [3] benchmarks/subjects/breaker.py: false trips, delays and misses of every method on real endpoints.

Examples
--------
Turns at about 40 ms, one without a value, then a slowdown; over from turn 23 on:

>>> from stabilitykit.detectors.itl_breaker import ITL_BREAKER
>>> from stabilitykit.detectors.trace import trace
>>> turns = trace(ITL_BREAKER, [38.0, 42.0] * 10 + [None, 44.0, 120.0, 125.0, 130.0])
>>> [n for n, out in enumerate(turns, start=1) if out["is_over"] == 1]
[23, 24, 25]
>>> {name: round(value, 1) for name, value in turns[22].items()}
{'is_over': 1.0, 'baseline_ms': 43.0, 'threshold_ms': 51.6, 'over_ratio': 2.3, 'evidence_ratio': 0.5}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.ewma import COUNT, LIMIT, MEAN, VARIANCE, ewma_update
from stabilitykit.kernels.guard import GUARD
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

METHODS = ("shewhart_cusum", "p90", "ewma", "static")
SHEWHART_CUSUM, P90, EWMA, STATIC = 0.0, 1.0, 2.0, 3.0
OCTAVES = 16
SLICE_BITS = 4
HALVE_AT = 1 << 15
"""Keeps uint16 counts from overflowing."""
FROZEN = 3
"""Place of the number of values over the threshold in a row, behind the three of the mean."""
EVIDENCE = 4
"""Place of the summed evidence."""
P90_FACTOR = 1.2
Z90 = 1.2815515655446004
"""p90 of the standard normal distribution: turns log(p90 / p50) into a standard deviation."""
LEAST_SPREAD = 0.2
"""Standard deviation of the logarithm below which no conversation is taken to be: a few turns say little of it."""
YOUNG_SPREAD, YOUNG_LIMIT = 8.0, 20.0
"""Turns' worth of doubt about spread and limit: both grow by that over the number of turns learned."""
LEARNED_OVER = 2.0
"""Turns over in a row that are still learned."""
GROWN = 18.0
"""Turns learned below which no turn over is: two more would be p90 themselves (two lie above it from 20 turns on)."""
MOST_GAIN, LEAST_GAIN, CAP = 0.51, -1.0, 1.5
"""What one turn adds at most, as a share of ``evidence``; what it takes at most; what the sum stops at, as a share."""
LEAST_MS = 1e-9
"""A smaller baseline is no baseline."""
MOST_REACH = 20.0
"""Keeps the exponential finite."""


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
    f[EVIDENCE] = 0.0
    if float(c[0]) <= P90:
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
def upper_bound(c: Block, base: float, p90: float, reach: float) -> float:
    """Give what a turn must exceed to be over by itself; ``reach`` is log(p90 / base), widened while n is small."""
    bound = base * (1.0 + float(c[1]))
    if float(c[0]) == P90:
        bound = max(bound, p90 * P90_FACTOR)
    elif float(c[0]) == SHEWHART_CUSUM:
        bound = max(bound, base * math.exp(min(1.5 * reach, MOST_REACH)))
    return bound


@kernel
def add_evidence(f: Block, c: Block, value: float, base: float, reach: float) -> int:
    """Add what a turn says for "slower by ``step``" against "as usual"; gives 0."""
    shift, limit = float(c[9]), evidence_limit(f, c)
    spread = max(reach / Z90, LEAST_SPREAD)
    gain = LEAST_GAIN
    if value >= LEAST_MS:
        gain = (math.log(value / base) - shift / 2.0) * shift / (spread * spread)
        gain = min(max(gain, LEAST_GAIN), MOST_GAIN * limit)
    f[EVIDENCE] = min(max(float(f[EVIDENCE]) + gain, 0.0), CAP * limit)
    return 0


@kernel
def evidence_limit(f: Block, c: Block) -> float:
    """Give the sum of evidence above which a turn is over."""
    return float(c[10]) * (1.0 + YOUNG_LIMIT / float(f[COUNT]))


@kernel
def freeze_or_learn(f: Block, w: Block, c: Block, value: float, is_over: bool) -> int:
    """Learn what is usual; of too long a row of what is not, only the level; gives 0."""
    f[FROZEN] = float(f[FROZEN]) + 1.0 if is_over else 0.0
    if float(f[FROZEN]) >= float(c[8]):
        start_afresh(f, w, c)
        f[FROZEN] = 0.0
    is_grown = float(c[0]) == SHEWHART_CUSUM and float(f[COUNT]) >= GROWN
    if float(f[FROZEN]) <= (LEARNED_OVER if is_grown else 0.0):
        learn(f, w, c, value)
    return 0


@kernel
def itl_breaker_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Compare with the threshold, weigh with the turns before, then learn what is not over.

    c is ``method, drift_factor, baseline_ms, warmup, first bin, start of the top octave, alpha,
    end of the first bin, max_freeze, log(step), evidence``.
    """
    value = float(x[io[0]])
    out = io[1]
    base = learned_baseline(f, w, c)
    bound = 0.0
    guard = 0.0
    share = math.nan
    known = abs(value) <= LIMIT
    is_learned = base >= LEAST_MS
    if is_learned:
        count = int(f[COUNT])
        p90 = base
        if float(c[0]) <= P90:
            p90 = histogram_value(w, count - (9 * count + 9) // 10 + 1, float(c[5]), OCTAVES, SLICE_BITS)
        reach = math.log(p90 / base) * (1.0 + YOUNG_SPREAD / float(f[COUNT]))
        bound = upper_bound(c, base, p90, reach)
        guard = GUARD
        if float(c[0]) == SHEWHART_CUSUM:
            if known:
                add_evidence(f, c, value, base, reach)
            share = float(f[EVIDENCE]) / evidence_limit(f, c)
    else:
        base = float(c[2])
        bound = base * (1.0 + float(c[1]))
    has_base = base >= LEAST_MS
    over = known and has_base and (value > bound + bound * guard or share > 1.0)
    x[out] = (1.0 if over else 0.0) if known and has_base else math.nan
    x[out + 1] = base if has_base else math.nan
    x[out + 2] = bound if has_base else math.nan
    x[out + 3] = value / bound if known and has_base else math.nan
    x[out + 4] = min(share, CAP)
    if known and float(c[0]) != STATIC:
        freeze_or_learn(f, w, c, value, over and is_learned)
    return 0


def _layout(settings: Mapping[str, Any]) -> Layout:
    if settings["method"] == "static":
        return Layout()
    if settings["method"] == "ewma":
        return Layout(f8=EVIDENCE + 1)
    return Layout(f8=EVIDENCE + 1, u2=histogram_size(OCTAVES, SLICE_BITS))


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
        math.log(settings["step"]),
        float(settings["evidence"]),
    )


ITL_BREAKER = DetectorSpec(
    type="itl_breaker",
    doc="inter-token latency against the conversation's own baseline",
    inputs={"input": "itl_ms"},
    settings=(
        SettingSpec(
            "method",
            "shewhart_cusum",
            "where baseline and threshold come from",
            "enum",
            "enum",
            values=METHODS,
            shapes_memory=True,
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
        SettingSpec(
            "step",
            1.7,
            "slowdown that shewhart_cusum looks for: between the 1.5 and 2 that are to be seen (breaker)",
            "ratio",
            lo=1.01,
            hi=100.0,
        ),
        SettingSpec(
            "evidence",
            5.0,
            "log-likelihood ratio above which shewhart_cusum calls a turn over: at most one false trip in 1,000 "
            "healthy turns, three in a row (breaker)",
            lo=1.0,
            hi=1000.0,
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
        OutputSpec(
            "is_over", "bool", "over the threshold by itself, or with the turns before it", kind="bool", lo=0.0, hi=1.0
        ),
        OutputSpec("baseline_ms", "ms", "median, mean or static baseline before this turn", lo=0.0),
        OutputSpec("threshold_ms", "ms", "what this turn is compared with", lo=0.0),
        OutputSpec("over_ratio", "ratio", "this turn / threshold: above 1 when over by itself", lo=0.0),
        OutputSpec(
            "evidence_ratio", "ratio", "summed evidence / limit: above 1 when over; shewhart_cusum only", lo=0.0, hi=CAP
        ),
    ),
    kernel=itl_breaker_kernel,
    layout=_layout,
    config=_config,
    model_bound=True,
    on_applied={"lower_clocks": "rebase", "quantize_kv": "rebase"},
)
"""See the module. Lower clocks and a quantised cache slow decoding down by our own doing: rebase.
"""
