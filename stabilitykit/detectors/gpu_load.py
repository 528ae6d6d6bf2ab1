"""Whether a GPU is overloaded or too hot, for long enough to act.

Inputs
------
memory, sm
    Shares of memory and SMs in use.
temperature
    In degrees C.
time
    When the sample was taken. Samples of one ``period`` count as one, by their medians; without times every
    sample is a period of its own.

Settings
--------
limit
    Score above which a period is over.
hot
    Temperature that must not be held.
soft, hard, recover
    Periods in a row: over for a soft trip, over for a hard trip, calm for the way back.

Maths
-----
Over the last 12 periods, percentiles linear as NumPy's: ``score = 0.4 P90(memory %) + 0.35 P85(sm %) +
0.25 T w(T)`` with ``T = max(temperature)`` and ``w = 0.8`` up to 70 C, ``min(1.5, 0.8 + 0.12 (T - 70))`` above.

``soft`` periods in a row with a score above the limit trip softly, ``hard`` ones hard. A temperature of ``hot``
held for two periods trips hard whatever the score; single samples of 85 to 92 C were seen on healthy cards,
medians not. A period is calm with a score below ``limit - 5`` and a temperature below ``hot``; ``recover`` calm
ones in a row end either trip. A period without a sensor leaves its weight to the others, and ``is_partial``
says so: a temperature alone passes 92 at 74 C, so a rule on the score should want all three.

``dynamic_threshold`` is 1.1 times P90 of the last 60 scores before this one, known from 12 on: a baseline to show
beside the score. As a limit it would rise with the load that it should catch.

The period that runs is not yet counted, so the outputs change when its first later sample comes. After 12 periods
without a sample, or when time runs backwards, everything starts anew.

When not to use it
------------------
To see one sensor pass one number: that is a rule. The score of a card that is merely busy is high too: 87 % of
memory, all SMs and 80 C, as a benchmark holds them for minutes, give 100 (benchmarks/subjects/gpu.py). Set ``limit``
above what your cards may do; the pack takes the score of a card with all sensors at their own limits.

References
----------
.. [1] formulas B2.3 (corrected weights and worked scores), B5.3 (92 %).
.. [2] R. J. Hyndman, Y. Fan, "Sample quantiles in statistical packages", 1996, definition 7.

Examples
--------
A busy card whose temperature rises a degree a period: soft and hard by its load, then hot:

>>> from stabilitykit.detectors.gpu_load import GPU_LOAD
>>> from stabilitykit.detectors.trace import trace
>>> rows = [{"memory": 0.95, "sm": 0.9, "temperature": 71.0 + n} for n in range(16)]
>>> turns = trace(GPU_LOAD, rows)
>>> [round(out["score"], 1) for out in turns[:4]]
[85.8, 88.2, 90.7, 93.2]
>>> [next(n for n, out in enumerate(turns, start=1) if out[name] == 1) for name in ("is_soft", "is_hard", "is_hot")]
[6, 8, 16]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.load_score import load_score
from stabilitykit.kernels.median import median_add, median_of, median_size
from stabilitykit.kernels.percentile import percentile
from stabilitykit.kernels.pointers import Block, offset_f8
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["GPU_LOAD", "gpu_load_kernel"]

WINDOW = 12
HISTORY = 60
SAMPLES = 32
"""Samples of a period that its medians can hold; of more, the last."""
START, HAS_START, PERIODS, OVER, HOT, CALM, SOFT, HARD, IS_HOT, SCORE, PARTIAL, SCORES, BASELINE, CELSIUS = range(14)
"""Begin of the running period; whether it has one; periods; three runs; trips; what was last said; past scores."""
RINGS = 14
"""Three rings of period medians, by sensor."""
PAST = RINGS + 3 * WINDOW
"""Ring of past scores."""
SCRATCH = PAST + HISTORY
MEDIANS = SCRATCH + HISTORY
"""Three running medians of the period."""
MEDIAN_SIZE = median_size(SAMPLES)
SIZE = MEDIANS + 3 * MEDIAN_SIZE


@kernel
def forget(f: Block) -> int:
    """Start anew; gives 0."""
    for k in range(MEDIANS + 3 * MEDIAN_SIZE):
        f[k] = 0.0
    return 0


@kernel
def sensor(f: Block, k: int, share: float) -> float:
    """Give a percentile of a sensor's last periods, unknown when the latest period had none of it."""
    periods = int(f[PERIODS])
    start = RINGS + k * WINDOW
    if math.isnan(float(f[start + (periods - 1) % WINDOW])):
        return math.nan
    return percentile(f, start, min(periods, WINDOW), share, SCRATCH)


@kernel
def run_of(length: float, holds: bool, unknown: bool) -> float:
    """Give the length of a row with one period more: an unknown one neither counts nor ends it."""
    return length if unknown else length + 1.0 if holds else 0.0


@kernel
def judge(f: Block, score: float, celsius: float, c: Block) -> int:
    """Move the three runs and the trips by one period; gives 0."""
    limit, is_blind = float(c[1]), math.isnan(celsius)
    f[OVER] = run_of(float(f[OVER]), score > limit, math.isnan(score))
    f[HOT] = run_of(float(f[HOT]), celsius >= float(c[2]), is_blind)
    f[CALM] = run_of(float(f[CALM]), score < limit - 5.0 and not celsius >= float(c[2]), math.isnan(score))
    if float(f[CALM]) >= float(c[5]):
        f[SOFT] = 0.0
        f[HARD] = 0.0
    if float(f[OVER]) >= float(c[3]):
        f[SOFT] = 1.0
    f[IS_HOT] = math.nan if is_blind else 1.0 if float(f[HOT]) >= 2.0 else 0.0
    if float(f[OVER]) >= float(c[4]) or float(f[IS_HOT]) == 1.0:
        f[HARD] = 1.0
    return 0


@kernel
def remember_score(f: Block, score: float) -> int:
    """Take the baseline of the scores before this one, then add it; gives 0."""
    count = int(f[SCORES])
    f[BASELINE] = math.nan
    if count >= WINDOW:
        f[BASELINE] = 1.1 * percentile(f, PAST, min(count, HISTORY), 0.9, SCRATCH)
    f[PAST + count % HISTORY] = score
    # Counts to twice the history and back, so that the place in the ring stays right for ever.
    f[SCORES] = float(count + 1 if count + 1 < 2 * HISTORY else HISTORY)
    return 0


@kernel
def close_period(f: Block, c: Block) -> int:
    """Turn the medians of the running period into one value a sensor, and judge; gives 0."""
    periods = int(f[PERIODS])
    celsius = math.nan
    for k in range(3):
        block = MEDIANS + k * MEDIAN_SIZE
        middle = median_of(offset_f8(f, block), SAMPLES)
        f[RINGS + k * WINDOW + periods % WINDOW] = middle
        f[block] = 0.0
        f[block + 1] = 0.0
        celsius = middle
    f[PERIODS] = float(periods + 1 if periods + 1 < 2 * WINDOW else WINDOW)
    memory, sm, top = sensor(f, 0, 0.9), sensor(f, 1, 0.85), sensor(f, 2, 1.0)
    score = load_score(100.0 * memory, 100.0 * sm, top)
    f[SCORE] = score
    f[CELSIUS] = celsius
    f[PARTIAL] = 1.0 if math.isnan(memory) or math.isnan(sm) or math.isnan(top) else 0.0
    judge(f, score, celsius, c)
    remember_score(f, score)
    return 0


@kernel
def take_sample(f: Block, memory: float, sm: float, celsius: float) -> int:
    """Add what is known of a sample to the running period; gives 0."""
    for k in range(3):
        value = memory if k == 0 else sm if k == 1 else celsius
        if not math.isnan(value):
            median_add(offset_f8(f, MEDIANS + k * MEDIAN_SIZE), SAMPLES, value)
    return 0


@kernel
def gpu_load_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Take one sample; c is ``period, limit, hot, soft, hard, recover``."""
    memory, sm, celsius, now, out = float(x[io[0]]), float(x[io[1]]), float(x[io[2]]), float(x[io[3]]), io[4]
    period = float(c[0])
    for k in range(8):
        x[out + k] = math.nan
    if math.isnan(memory) and math.isnan(sm) and math.isnan(celsius):
        return 0
    if not math.isnan(now) and float(f[HAS_START]) == 1.0:
        passed = (now - float(f[START])) / period
        if passed < 0.0 or passed >= WINDOW + 1.0:
            forget(f)
        elif passed >= 1.0:
            close_period(f, c)
            f[START] = float(f[START]) + float(int(passed)) * period
    if not math.isnan(now) and float(f[HAS_START]) == 0.0:
        f[HAS_START] = 1.0
        f[START] = now
    take_sample(f, memory, sm, celsius)
    if math.isnan(now):
        close_period(f, c)
        f[HAS_START] = 0.0
    if float(f[PERIODS]) > 0.0:
        x[out] = float(f[SCORE])
        x[out + 1] = float(f[SOFT])
        x[out + 2] = float(f[HARD])
        x[out + 3] = float(f[IS_HOT])
        x[out + 4] = float(f[PARTIAL])
        x[out + 5] = float(f[BASELINE])
        x[out + 6] = float(f[CELSIUS])
        x[out + 7] = float(c[1])
    return 0


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    return tuple(float(settings[name]) for name in ("period", "limit", "hot", "soft", "hard", "recover"))


def _row(name: str, default: int, doc: str) -> SettingSpec:
    return SettingSpec(name, default, f"periods in a row {doc}", kind="count", lo=1, hi=255)


GPU_LOAD = DetectorSpec(
    type="gpu_load",
    doc="a GPU that is overloaded or too hot, with a soft and a hard trip and a way back",
    inputs={
        "memory": "gpu_memory_ratio",
        "sm": "gpu_sm_ratio",
        "temperature": "gpu_temperature_c",
        "time": "timestamp_s",
    },
    settings=(
        SettingSpec(
            "period", 5.0, "what samples are put together; 12 of them are the window (B2.3)", "s", lo=1e-3, hi=1e6
        ),
        SettingSpec("limit", 92.0, "score above which a period is over (B2.3)", lo=0.0, hi=300.0),
        SettingSpec("hot", 85.0, "temperature that must not be held for two periods (B2.3)", "C", lo=-50.0, hi=200.0),
        _row("soft", 3, "over the limit: soft trip (B2.3)"),
        _row("hard", 5, "over the limit: hard trip (B2.3)"),
        _row("recover", 6, "below the limit less 5: the trip ends (B2.3)"),
    ),
    outputs=(
        OutputSpec("score", "count", "load score of the last period: 112.5 with all full at 100 C", lo=0.0, hi=300.0),
        OutputSpec("is_soft", "bool", "tripped softly", kind="bool", lo=0.0, hi=1.0),
        OutputSpec("is_hard", "bool", "tripped hard, by load or heat", kind="bool", lo=0.0, hi=1.0),
        OutputSpec("is_hot", "bool", "the last two periods were hot", kind="bool", lo=0.0, hi=1.0),
        OutputSpec(
            "is_partial", "bool", "a sensor was missing, the others have its weight", kind="bool", lo=0.0, hi=1.0
        ),
        OutputSpec("dynamic_threshold", "count", "1.1 times P90 of the scores before, a baseline", lo=0.0, hi=330.0),
        OutputSpec("temperature_c", "C", "median temperature of the last period", lo=-50.0, hi=200.0),
        OutputSpec("limit", "count", "the score's limit", lo=0.0, hi=300.0),
    ),
    kernel=gpu_load_kernel,
    layout=lambda settings: Layout(f8=SIZE),
    config=_config,
)
"""See the module."""
