"""A limit with hysteresis: on above one value, off only below another.

Inputs
------
input
    A ratio.

Settings
--------
above, below
    Above the first it is on, strictly; below the second off, strictly; in between it stays what it was.

Maths
-----
Two thresholds and one bit, as in a Schmitt trigger. It starts off. An unknown value leaves the bit alone and the
output unknown.

When not to use it
------------------
Against noise alone: ``for`` and ``keep_for`` of a rule count turns, which is simpler. A latch is for an action that
moves the value it watches: fewer bits for the KV cache make room, and must not be taken back for that.

References
----------
.. [1] formulas B5.3: 4-bit KV above 92 % of GPU memory, left below 85 %.
.. [2] O. H. Schmitt, "A thermionic trigger", Journal of Scientific Instruments 15, 1938.

Examples
--------
>>> from stabilitykit.detectors.latch import LATCH
>>> from stabilitykit.detectors.trace import trace
>>> [out["is_on"] for out in trace(LATCH, [0.90, 0.92, 0.93, 0.88, None, 0.85, 0.84, 0.90])]
[0.0, 0.0, 1.0, 1.0, nan, 1.0, 0.0, 0.0]
"""

from __future__ import annotations

import math

from stabilitykit.kernels import kernel
from stabilitykit.kernels.pointers import Block
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["LATCH", "latch_kernel"]


@kernel
def latch_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Compare with both limits; c is ``above, below``."""
    value = float(x[io[0]])
    if value > float(c[0]):
        f[0] = 1.0
    elif value < float(c[1]):
        f[0] = 0.0
    known = not math.isnan(value)
    x[io[1]] = float(f[0]) if known else math.nan
    x[io[1] + 1] = value
    x[io[1] + 2] = float(c[1] if float(f[0]) == 1.0 else c[0]) if known else math.nan
    return 0


LATCH = DetectorSpec(
    type="latch",
    doc="a limit with hysteresis on a ratio",
    inputs={"input": ""},
    settings=(
        SettingSpec("above", 0.92, "on above it; GPU memory of B5.3", "ratio", lo=-1e9, hi=1e9),
        SettingSpec("below", 0.85, "off below it (B5.3)", "ratio", lo=-1e9, hi=1e9),
    ),
    outputs=(
        OutputSpec("is_on", "bool", "it was above, and not below since", kind="bool", lo=0.0, hi=1.0),
        OutputSpec("value", "ratio", "the input"),
        OutputSpec("threshold", "ratio", "what the value must pass to change this: `below` when on, else `above`"),
    ),
    kernel=latch_kernel,
    layout=lambda settings: Layout(f8=1),
    config=lambda settings: (float(settings["above"]), float(settings["below"])),
)
"""See the module."""
