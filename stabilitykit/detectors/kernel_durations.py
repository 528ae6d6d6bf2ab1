"""How long the last kernels took: their mean, their p95, and the share of slow ones.

Inputs
------
input
    Duration of one kernel, a sample each (``kernel_us``).

Settings
--------
window
    Kernels that count, the latest ones.
tail
    A kernel that takes longer is slow.
least
    Kernels below which nothing is said.

Maths
-----
Over the window: ``mean``; ``p95``, linear between ranks as NumPy's default; ``tail_ratio = count(x > tail) / n``.
A tail below 5 % and a p95 below ``tail`` say the same. p95 of fewer than 20 values is the greatest of them, so
below ``least`` all three are unknown.

When not to use it
------------------
Over kernels of very different kinds: a window of matrix products and copies has the tail of its mixture, and a
change of the mixture looks like a change of the GPU. Give each kind its own device name then. A value for each
*turn* (prefill time) belongs to ``baseline`` or ``quantile``.

References
----------
.. [1] formulas B2.2: a matrix product 3.2 us in the mean, p95 7.8, 2.1 % above 10 us; a reduction 1.9, 4.3, 0.3 %.
.. [2] R. J. Hyndman, Y. Fan, "Sample quantiles in statistical packages", 1996, definition 7.

Examples
--------
Kernels of 3 us; then every fifth takes 40 us:

>>> from stabilitykit.detectors.kernel_durations import KERNEL_DURATIONS
>>> from stabilitykit.detectors.trace import trace
>>> turns = trace(KERNEL_DURATIONS, [3.0] * 80 + ([40.0] + [3.0] * 4) * 4)
>>> [n for n, out in enumerate(turns, start=1) if out["tail_ratio"] > 0.02][0]
86
>>> {name: round(value, 2) for name, value in turns[-1].items()}
{'mean_us': 4.48, 'p95_us': 3.0, 'tail_ratio': 0.04, 'n_count': 100.0, 'tail_us': 10.0}
>>> turns[18]["p95_us"], turns[19]["p95_us"]
(nan, 3.0)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.median import RING, median_add, median_size
from stabilitykit.kernels.percentile import sorted_percentile
from stabilitykit.kernels.pointers import Block, offset_f8
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["KERNEL_DURATIONS", "kernel_durations_kernel"]


@kernel
def kernel_durations_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Take one duration in; c is ``window, tail, least``."""
    value, out, window = float(x[io[0]]), io[1], int(c[0])
    for k in range(3):
        x[out + k] = math.nan
    if not math.isnan(value):
        median_add(f, window, value)
    count = int(f[0])
    x[out + 3] = float(count)
    x[out + 4] = float(c[1])
    if math.isnan(value) or float(count) < float(c[2]):
        return 0
    ordered = offset_f8(f, RING + window)
    total, slow = 0.0, 0
    for k in range(count):
        total += float(ordered[k])
        slow += 1 if float(ordered[k]) > float(c[1]) else 0
    x[out] = total / float(count)
    x[out + 1] = sorted_percentile(ordered, count, 0.95)
    x[out + 2] = float(slow) / float(count)
    return 0


def _layout(settings: Mapping[str, Any]) -> Layout:
    return Layout(f8=median_size(settings["window"]))


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    return float(settings["window"]), float(settings["tail"]), float(settings["least"])


KERNEL_DURATIONS = DetectorSpec(
    type="kernel_durations",
    doc="mean, p95 and share of slow ones of the last kernels",
    inputs={"input": "kernel_us"},
    settings=(
        SettingSpec(
            "window",
            200,
            "latest kernels that count; ten of them are 5 %",
            kind="count",
            lo=1,
            hi=512,
            shapes_memory=True,
        ),
        SettingSpec("tail", 10.0, "a longer kernel is slow; the source's (B2.2)", "us", lo=0.0, hi=1e12),
        SettingSpec("least", 20, "kernels below which nothing is said: 1/(1 - 0.95)", kind="count", lo=1, hi=512),
    ),
    outputs=(
        OutputSpec("mean_us", "us", "mean of the window", lo=0.0),
        OutputSpec("p95_us", "us", "19 of 20 are not above it", lo=0.0),
        OutputSpec("tail_ratio", "ratio", "share above the tail", lo=0.0, hi=1.0),
        OutputSpec("n_count", "count", "kernels in the window", "count", lo=0.0, hi=512.0),
        OutputSpec("tail_us", "us", "where the tail begins", lo=0.0, hi=1e12),
    ),
    kernel=kernel_durations_kernel,
    layout=_layout,
    config=_config,
)
"""See the module."""
