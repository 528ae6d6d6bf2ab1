"""A KV cache that fills while fewer requests run: blocks that nobody uses are not given back.

Load moves both the same way. When usage rises over a window in which the number of running requests falls, what
it is used for has gone.

Inputs
------
usage
    ``kv_usage_ratio`` or ``kv_used_tokens``.
running
    ``running_requests``.

Settings
--------
window
    Samples, an even number; its two halves are compared by their means.
rise, fall
    Relative change that usage must exceed, and the one that the requests must fall by.

Outputs
-------
usage_ratio, running_ratio
    Mean of the newer half / mean of the older half.
is_leak
    The first is above ``1 + rise`` while the second is below ``1 - fall``.

Notes
-----
A sample without both inputs is left out. With an older half of 0 the ratio is unknown, and so is the leak.

When not to use it
------------------
Some servers count the prefix cache as used (llama.cpp keeps the prompt of an idle slot, SGLang its radix tree):
there usage rises for good while nobody waits. And long answers grow while short ones end: take it over several
windows (``for``), at a level that matters (``kv_usage_ratio > 80 %``).

References
----------
"What this data taught" (evictable cache counts as used); formulas A2.2.

Examples
--------
Requests end, usage grows:

>>> from stabilitykit.detectors.leak import LEAK
>>> from stabilitykit.detectors.trace import trace
>>> rows = [{"usage": 0.4 + i / 50, "running": 20 - i} for i in range(12)]
>>> [out["is_leak"] for out in trace(LEAK, rows)][8:]
[nan, 1.0, 1.0, 1.0]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.ewma import LIMIT
from stabilitykit.kernels.pointers import Block
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["LEAK", "leak_kernel"]

SEEN, PLACE, RING = 0, 1, 2


@kernel
def half_ratio(f: Block, start: int, oldest: int, half: int) -> float:
    """Give the sum of the newer half of a full ring over that of the older half; NaN when that is 0."""
    older, newer = 0.0, 0.0
    for k in range(half):
        older += float(f[start + (oldest + k) % (2 * half)])
        newer += float(f[start + (oldest + half + k) % (2 * half)])
    ratio = newer / older if older > 0.0 else math.nan
    return ratio if ratio <= LIMIT else math.nan


@kernel
def leak_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Take a sample, compare both halves of the window; c is ``half, rise, fall``."""
    usage, running, out, half = float(x[io[0]]), float(x[io[1]]), io[2], int(c[0])
    more, fewer = math.nan, math.nan
    if abs(usage) <= LIMIT and not math.isnan(running):
        place = int(f[PLACE])
        f[RING + place] = usage
        f[RING + 2 * half + place] = running
        f[PLACE] = float((place + 1) % (2 * half))
        f[SEEN] = min(float(f[SEEN]) + 1.0, 2.0 * half)
        if int(f[SEEN]) == 2 * half:
            more = half_ratio(f, RING, int(f[PLACE]), half)
            fewer = half_ratio(f, RING + 2 * half, int(f[PLACE]), half)
    x[out] = more
    x[out + 1] = fewer
    leaks = more > 1.0 + float(c[1]) and fewer < 1.0 - float(c[2])
    x[out + 2] = math.nan if math.isnan(more) or math.isnan(fewer) else 1.0 if leaks else 0.0
    return 0


def _half(settings: Mapping[str, Any]) -> int:
    return int(settings["window"]) // 2


def _layout(settings: Mapping[str, Any]) -> Layout:
    return Layout(f8=RING + 4 * _half(settings))


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    return float(_half(settings)), float(settings["rise"]), float(settings["fall"])


LEAK = DetectorSpec(
    type="leak",
    doc="KV usage that rises while fewer requests run",
    inputs={"usage": "", "running": "running_requests"},
    settings=(
        SettingSpec(
            "window",
            10,
            "samples, in two halves; ten, as replica-saturated waits",
            kind="count",
            lo=2,
            hi=128,
            shapes_memory=True,
        ),
        SettingSpec(
            "rise",
            0.1,
            "rise of usage that is one; so a vLLM server under load made five samples in a row "
            "(benchmarks/subjects/trends.py)",
            "ratio",
            lo=0.0,
            hi=100.0,
        ),
        SettingSpec(
            "fall",
            0.1,
            "fall of the requests that is one; see benchmarks/subjects/trends.py",
            "ratio",
            lo=0.0,
            hi=1.0,
        ),
    ),
    outputs=(
        OutputSpec("usage_ratio", "ratio", "usage of the newer half / of the older half", lo=0.0, hi=LIMIT),
        OutputSpec("running_ratio", "ratio", "running requests, likewise", lo=0.0, hi=LIMIT),
        OutputSpec("is_leak", "bool", "usage rose while requests fell", kind="bool", lo=0.0, hi=1.0),
    ),
    kernel=leak_kernel,
    layout=_layout,
    config=_config,
)
"""See the module."""
