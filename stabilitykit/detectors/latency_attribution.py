"""Which part of a slow answer is slow: the whole, the first token, or the gaps between tokens.

Each of response time, time to first token and inter-token latency is compared with its own mean of the conversation.
What lies above it is weighted and normalised to shares. And the three must fit together: a response takes its first
token and one gap for each further token; where that fails, one of them is measured or averaged in another way.

Inputs
------
rt, ttft, itl
    Response time, time to first token, mean gap between tokens (``rt_ms``, ``ttft_ms``, ``itl_ms``).
tokens
    Generated tokens (``output_tokens``); without them only the identity stays unknown.

Settings
--------
rt_weight, ttft_weight, itl_weight
    .40, .35, .25 are the source's; only their ratio matters for the shares.
tolerance
    Share of the response time that may stay unexplained. All turns of the recorded llama.cpp server stay within half of
    it (tests/detectors/test_latency_attribution.py), and one gap too many in answers of 30 tokens exceeds it.
alpha, warmup
    Weight of a new value in a mean; known turns before it counts.
limit, max_freeze
    A value above ``limit`` times its mean is not learned, else the fault becomes the baseline; after so many in a row
    the mean starts afresh.

Outputs
-------
rt_share, ttft_share, itl_share
    w * max(0, x / baseline - 1), normalised to a sum of 1; unknown while nothing is above its baseline.
excess
    The same before it is normalised, summed: 0 as usual, 1 when all three take twice as long.
residual_ms
    rt - ttft - itl * (tokens - 1).
is_consistent
    The residual is within the tolerance. Unknown below two tokens: there is no gap.

Notes
-----
A response time contains the other two, so its share says little by itself: high with the other two low, the answer was
longer, or time went before or after the tokens (the residual then says how much). A turn that lacks one of the three,
or brings a negative one, gives no shares; those it brings are learned.

When not to use it
------------------
Where answers differ in length by the order of magnitude: the response time follows the length, set ``rt_weight: 0``.
A client that takes the mean gap over all tokens, the first included, is never consistent (the public llmperf runs).

References
----------
formulas A2.3 (weights, identity).

Examples
--------
Eight usual turns, then the first token takes a second longer and nothing else changes:

>>> from stabilitykit.detectors.latency_attribution import LATENCY_ATTRIBUTION
>>> from stabilitykit.detectors.trace import trace
>>> usual = {"rt": 3000.0, "ttft": 500.0, "itl": 25.0, "tokens": 101.0}
>>> turns = trace(LATENCY_ATTRIBUTION, [usual] * 8 + [usual | {"rt": 4000.0, "ttft": 1500.0}])
>>> {name: round(value, 3) for name, value in turns[-1].items()}  # doctest: +NORMALIZE_WHITESPACE
{'rt_share': 0.16, 'ttft_share': 0.84, 'itl_share': 0.0, 'excess': 0.833, 'residual_ms': 0.0,
 'is_consistent': 1.0}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.ewma import COUNT, MEAN, VARIANCE, ewma_update
from stabilitykit.kernels.pointers import Block, offset_f8
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["LATENCY_ATTRIBUTION", "latency_attribution_kernel"]

PARTS = 3
FROZEN = 3
"""Place of the number of values in a row that were not learned, behind the three of the mean."""
WIDTH = 4
ALPHA, WARMUP, LIMIT, MAX_FREEZE, TOLERANCE = 3, 4, 5, 6, 7  # places in c, behind the weights
EXCESS, RESIDUAL, CONSISTENT = 3, 4, 5  # outputs behind the shares
LEAST_MS = 1e-9
"""A smaller mean is no baseline."""
MOST_MS = 1e9
"""Above it, and below 0, a duration is unknown."""


@kernel
def is_duration(value: float) -> bool:
    """Tell whether a value is one; NaN is none."""
    return value >= 0.0 and value <= MOST_MS


@kernel
def excess_of(f: Block, c: Block, value: float) -> float:
    """Give by what share a duration is above its baseline, 0 below; NaN without a value or a baseline."""
    if not is_duration(value) or float(f[COUNT]) < float(c[WARMUP]) or float(f[MEAN]) < LEAST_MS:
        return math.nan
    return max(value / float(f[MEAN]) - 1.0, 0.0)


@kernel
def learn_duration(f: Block, c: Block, value: float) -> int:
    """Take a known duration into its mean unless it is far above; gives 0."""
    if not is_duration(value):
        return 0
    is_far = float(f[COUNT]) >= float(c[WARMUP]) and value > float(c[LIMIT]) * float(f[MEAN])
    f[FROZEN] = float(f[FROZEN]) + 1.0 if is_far else 0.0
    if float(f[FROZEN]) >= float(c[MAX_FREEZE]):
        f[COUNT], f[MEAN], f[VARIANCE], f[FROZEN] = 0.0, 0.0, 0.0, 0.0
    if float(f[FROZEN]) == 0.0:
        ewma_update(f, value, float(c[ALPHA]))
    return 0


@kernel
def latency_attribution_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Attribute what is above the baselines, check the identity, then learn.

    c is ``the three weights, alpha, warmup, limit, max_freeze, tolerance``; f holds three means of four numbers.
    """
    out, total = io[4], 0.0
    for k in range(PARTS):
        value, part = float(x[io[k]]), offset_f8(f, WIDTH * k)
        share = float(c[k]) * excess_of(part, c, value)
        x[out + k] = share
        total += share
        learn_duration(part, c, value)
    for k in range(PARTS):
        x[out + k] = float(x[out + k]) / total if total > 0.0 else math.nan
    x[out + EXCESS] = total
    rt, ttft, itl, tokens = float(x[io[0]]), float(x[io[1]]), float(x[io[2]]), float(x[io[3]])
    x[out + RESIDUAL] = math.nan
    x[out + CONSISTENT] = math.nan
    if is_duration(rt) and is_duration(ttft) and is_duration(itl) and tokens >= 2.0 and tokens <= MOST_MS:
        residual = rt - ttft - itl * (tokens - 1.0)
        x[out + RESIDUAL] = residual
        x[out + CONSISTENT] = 1.0 if abs(residual) <= float(c[TOLERANCE]) * rt else 0.0
    return 0


def _layout(settings: Mapping[str, Any]) -> Layout:
    return Layout(f8=WIDTH * PARTS)


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    names = ("rt_weight", "ttft_weight", "itl_weight", "alpha", "warmup", "limit", "max_freeze", "tolerance")
    return tuple(float(settings[name]) for name in names)


_SOURCE = "the source's (formulas A2.3)"
_AS_ITL = "as itl_breaker's"

LATENCY_ATTRIBUTION = DetectorSpec(
    type="latency_attribution",
    doc="which part of a slow answer is slow, and whether its times fit together",
    inputs={"rt": "rt_ms", "ttft": "ttft_ms", "itl": "itl_ms", "tokens": "output_tokens"},
    settings=(
        SettingSpec("rt_weight", 0.40, f"weight of the response time; {_SOURCE}", "ratio", lo=0.0, hi=1.0),
        SettingSpec("ttft_weight", 0.35, f"weight of the first token; {_SOURCE}", "ratio", lo=0.0, hi=1.0),
        SettingSpec("itl_weight", 0.25, f"weight of the gaps; {_SOURCE}", "ratio", lo=0.0, hi=1.0),
        SettingSpec("alpha", 0.05, f"weight of a new value in a mean; {_AS_ITL}", lo=1e-6, hi=1.0),
        SettingSpec("warmup", 8, "known turns before a mean counts; the latency pack's", kind="count", lo=1, hi=10000),
        SettingSpec(
            "limit",
            2.0,
            "value / mean above which nothing is learned; bimodal endpoints freeze below it",
            lo=1.0,
            hi=1e6,
        ),
        SettingSpec(
            "max_freeze", 50, f"turns in a row before a mean starts afresh; {_AS_ITL}", kind="count", lo=1, hi=30000
        ),
        SettingSpec(
            "tolerance", 0.02, "unexplained share of the response time; measured on a server", "ratio", lo=0.0, hi=1.0
        ),
    ),
    outputs=(
        OutputSpec("rt_share", "ratio", "share of the response time in the excess", lo=0.0, hi=1.0),
        OutputSpec("ttft_share", "ratio", "share of the first token in the excess", lo=0.0, hi=1.0),
        OutputSpec("itl_share", "ratio", "share of the gaps in the excess", lo=0.0, hi=1.0),
        OutputSpec("excess", "ratio", "weighted sum of what is above the baselines", lo=0.0),
        OutputSpec("residual_ms", "ms", "response time that first token and gaps do not explain"),
        OutputSpec("is_consistent", "bool", "the residual is within the tolerance", kind="bool", lo=0.0, hi=1.0),
    ),
    kernel=latency_attribution_kernel,
    layout=_layout,
    config=_config,
    model_bound=True,
    on_applied={"lower_clocks": "rebase", "quantize_kv": "rebase"},
)
"""See the module."""
