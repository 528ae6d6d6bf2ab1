"""An open stream that is silent for far longer than this session's tokens ever took: it hangs.

A dead engine can answer its health check with 200 while no token comes. The host tells how long an open stream
has been quiet; before its first token the usual time to the first token is the measure, after it the
usual gap between tokens.

Inputs
------
age
    Time since the last token of a stream still open, or since the request before the first (``stream_age_ms``).
itl, ttft
    Of the turns that ended (``itl_ms``, ``ttft_ms``): what is usual.
tokens
    Tokens that the open stream has brought (``output_tokens``); unknown counts as none: the longer wait.

Settings
--------
itl_factor, ttft_factor
    Times the usual value after which silence is a hang.
floor_ms
    A shorter silence is none, whatever is usual.
warmup
    Known values before there is a usual one.

Outputs
-------
silence_ratio
    Silence / usual value.
is_hung
    Silence is above the floor and above the factor times the usual value.

Notes
-----
Usual is the exponentially weighted mean of earlier turns (weight 0.05, A4.4). Both means learn on every turn that
brings them, a turn that reports an age as well: its own ITL is of the past.

When not to use it
------------------
On the first turn there is nothing to compare with: keep an absolute bound beside it (``stream_age_ms > 120 s``).

References
----------
"What this data taught": a foreign prefill silenced a session for 110 s, and then it went on; the ratio of the largest
to the median ITL of 13 hosted endpoints runs from 1.1 to 69.

Examples
--------
Tokens every 40 ms, the first after 500 ms; then the open stream is quiet for 3, 12 and 120 s:

>>> from stabilitykit.detectors.no_progress import NO_PROGRESS
>>> from stabilitykit.detectors.trace import trace
>>> rows = [{"itl": 40.0, "ttft": 500.0}] * 5 + [{"age": 1e3 * s, "tokens": 7.0} for s in (3, 12, 120)]
>>> [(out["silence_ratio"], out["is_hung"]) for out in trace(NO_PROGRESS, rows)][5:]
[(75.0, 0.0), (300.0, 1.0), (3000.0, 1.0)]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.ewma import COUNT, LIMIT, MEAN, ewma_update
from stabilitykit.kernels.pointers import Block, offset_f8
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["NO_PROGRESS", "no_progress_kernel"]


@kernel
def usual(f: Block, warmup: float) -> float:
    """Give the mean, NaN when cold or nothing to divide by."""
    mean = float(f[MEAN])
    return mean if float(f[COUNT]) >= warmup and mean > 0.0 else math.nan


@kernel
def no_progress_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Compare the silence, then learn; c is ``ITL factor, TTFT factor, floor, warmup, alpha``."""
    age, itl, ttft = float(x[io[0]]), float(x[io[1]]), float(x[io[2]])
    tokens, out = float(x[io[3]]), io[4]
    first = offset_f8(f, 3)
    has_begun = tokens > 0.0
    base = usual(f, float(c[3])) if has_begun else usual(first, float(c[3]))
    factor = float(c[0]) if has_begun else float(c[1])
    ratio = age / base
    if not ratio <= LIMIT:
        ratio = math.nan
    x[out] = ratio
    x[out + 1] = math.nan if math.isnan(ratio) else 1.0 if ratio > factor and age > float(c[2]) else 0.0
    if not math.isnan(itl):
        ewma_update(f, itl, float(c[4]))
    if not math.isnan(ttft):
        ewma_update(first, ttft, float(c[4]))
    return 0


def _layout(settings: Mapping[str, Any]) -> Layout:
    return Layout(f8=6)


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    return (*(float(settings[name]) for name in ("itl_factor", "ttft_factor", "floor_ms", "warmup")), 0.05)


NO_PROGRESS = DetectorSpec(
    type="no_progress",
    doc="an open stream that is silent for far longer than this session's tokens take",
    inputs={"age": "stream_age_ms", "itl": "itl_ms", "ttft": "ttft_ms", "tokens": "output_tokens"},
    settings=(
        SettingSpec(
            "itl_factor",
            100.0,
            "times the usual gap; above the 69 that hosted endpoints reach between the largest and the median",
            "ratio",
            lo=1.0,
            hi=1e9,
        ),
        SettingSpec(
            "ttft_factor",
            20.0,
            "times the usual first token; 10 of 11 hosted endpoints reach 3.3 at most, one once 183 "
            "(benchmarks/subjects/trends.py)",
            "ratio",
            lo=1.0,
            hi=1e9,
        ),
        SettingSpec(
            "floor_ms",
            10000.0,
            "shorter silence is none; two gaps at 0.2 tokens/s, as another's prefill slowed a session",
            "ms",
            lo=0.0,
            hi=1e9,
        ),
        SettingSpec(
            "warmup",
            2,
            "known values before there is a usual one; of two recorded hangs one came on the third turn "
            "(benchmarks/subjects/trends.py)",
            kind="count",
            lo=1,
            hi=10000,
        ),
    ),
    outputs=(
        OutputSpec("silence_ratio", "ratio", "silence / what is usual", lo=0.0, hi=LIMIT),
        OutputSpec("is_hung", "bool", "silence above floor and factor", kind="bool", lo=0.0, hi=1.0),
    ),
    kernel=no_progress_kernel,
    layout=_layout,
    config=_config,
    model_bound=True,
)
"""See the module. Another model has another speed, so both means belong to the model."""
