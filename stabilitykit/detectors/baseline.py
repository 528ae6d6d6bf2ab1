"""What a number usually is: exponentially weighted mean and spread of any scalar.

A threshold that fits every deployment does not exist; "twice what this conversation is used to"
does. The baseline is the mean of the *earlier* values: a value is compared before it is learned.

When not to use it
------------------
A limit that is known beforehand (a context window, a promise to users) is a comparison in a rule. For
the gap between tokens take ``itl_breaker``: a baseline learns every value, so a trouble that lasts
``1 / alpha`` turns is what is usual. Where the mean is near 0 a ratio says nothing.

References
----------
.. [1] D. H. D. West, "Updating mean and variance estimates: an improved method", CACM 22(9), 1979.
.. [2] S. W. Roberts, "Control chart tests based on geometric moving averages", Technometrics 1(3), 1959.

Examples
--------
Twenty prompts of about 1,000 tokens, then one of 4,000:

>>> from stabilitykit.detectors.baseline import BASELINE
>>> from stabilitykit.detectors.trace import trace
>>> turns = trace(BASELINE, [990, 1010] * 10 + [4000])
>>> [n for n, out in enumerate(turns, start=1) if out["ratio"] > 2]
[21]
>>> {name: round(value, 6) for name, value in turns[20].items()}
{'mean': 1000.0, 'deviation': 10.0, 'ratio': 4.0}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.ewma import COUNT, LIMIT, MEAN, VARIANCE, ewma_update
from stabilitykit.kernels.pointers import Block
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["BASELINE", "baseline_kernel"]


@kernel
def baseline_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Compare with the baseline, then learn; c is ``alpha, warmup``."""
    value = float(x[io[0]])
    out = io[1]
    mean = math.nan
    deviation = math.nan
    ratio = math.nan
    if float(f[COUNT]) >= float(c[1]):
        mean = float(f[MEAN])
        deviation = math.sqrt(float(f[VARIANCE]))
    known = abs(value) <= LIMIT
    if known and mean != 0.0:
        ratio = value / mean
        if abs(ratio) > LIMIT:
            ratio = math.nan
    if known:
        ewma_update(f, value, float(c[0]))
    x[out] = mean
    x[out + 1] = deviation
    x[out + 2] = ratio
    return 0


def _layout(settings: Mapping[str, Any]) -> Layout:
    return Layout(f8=3)


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    return float(settings["alpha"]), float(settings["warmup"])


BASELINE = DetectorSpec(
    type="baseline",
    doc="exponentially weighted mean and deviation of a signal, and how a value compares with them",
    inputs={"input": ""},
    settings=(
        SettingSpec(
            "alpha",
            0.05,
            "weight of a new value once 1/alpha were seen; 0.05 as measured for ITL (formulas A4.4)",
            lo=1e-6,
            hi=1.0,
        ),
        SettingSpec(
            "warmup", 20, "known values before anything is said; 20 as for ITL (A4.4)", kind="count", lo=1, hi=65535
        ),
    ),
    outputs=(
        OutputSpec("mean", "input", "mean of the values before this turn", lo=-LIMIT, hi=LIMIT),
        OutputSpec("deviation", "input", "their standard deviation", lo=0.0, hi=2 * LIMIT),
        OutputSpec("ratio", "ratio", "this value / mean; unknown when the mean is 0", lo=-LIMIT, hi=LIMIT),
    ),
    kernel=baseline_kernel,
    layout=_layout,
    config=_config,
    model_bound=True,
    on_applied={"reset_context": "rebase", "trim_context": "rebase", "rollback_snapshot": "rebase"},
)
"""See the module. The unit ``input`` of an output stands for the unit of the input signal.

A reset, trim or rollback that the host carried out changes what is usual for every token count,
so the baseline starts afresh.
"""
