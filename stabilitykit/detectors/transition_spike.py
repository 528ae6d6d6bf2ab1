"""Is a state transition of the host slower than nearly all before it? Single spikes and bursts.

A spike is a transition above ``max(floor, p99.9 of the past)``, or above the floor alone until 1,000
transitions were seen: below that number the nearest rank is just the greatest of them. Read before this
transition is counted. One healthy transition in a thousand is a spike by construction, so one is a signal
and no trip. Three among the last 100 happen by chance once in 6,700 (two: once in 220, three in 1,000:
once in 12), hence ``burst_count``.

The past is the histogram of ``quantile``, 3 KB and 1.6 % exact; the bound is the upper end of the bin that
holds p99.9, so a value as high as p99.9 is no spike. At 2^20 values all counts are halved.

When not to use it
------------------
To find slow transitions that are always slow. They become the p99.9; a rule with a
fixed threshold sees them.

References
----------
.. [1] formulas B1.1: six distributions of 200,000 values, worst error of p99.9 1.1 % (P2: up to 15 % after
   a change of level).
.. [2] G. Tene, "HdrHistogram", 2012.

Examples
--------
Transitions of 1.0 to 1.9 us; from the 2,101st on every tenth takes 9 us:

>>> from stabilitykit.detectors.trace import trace
>>> from stabilitykit.detectors.transition_spike import TRANSITION_SPIKE
>>> values = [1 + (i % 10) / 10 for i in range(2100)] + ([9.0] + [1.5] * 9) * 4
>>> turns = trace(TRANSITION_SPIKE, values)
>>> [n for n, out in enumerate(turns, start=1) if out["is_spike"] == 1]
[2101, 2111, 2121]
>>> {name: round(value, 2) for name, value in turns[2120].items()}
{'is_spike': 1.0, 'threshold_us': 4.2, 'burst_count': 3.0, 'over_ratio': 2.14}

The fourth is none: three of 2,130 are more than one in a thousand, so 9 us is the p99.9 by then. With n
transitions in the past ``1 + n / 1000`` equal spikes are seen before they become usual, so a burst of three
takes 2,000 transitions, or spikes that grow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.histogram import first_bin
from stabilitykit.kernels.pointers import Block
from stabilitykit.kernels.spike import BURST, OCTAVES, SLICE_BITS, SPIKE_WORDS, spike_bound, spike_take
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["TRANSITION_SPIKE", "transition_spike_kernel"]


@kernel
def transition_spike_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Compare with the past, then count; c is ``floor, first bin, start of the top octave``."""
    value = float(x[io[0]])
    out = io[1]
    bound = spike_bound(h, float(c[2]), float(c[0]))
    over = value > bound
    x[out] = math.nan if math.isnan(value) or math.isnan(bound) else (1.0 if over else 0.0)
    x[out + 1] = bound
    x[out + 2] = math.nan
    x[out + 3] = value / bound
    if not math.isnan(value):
        x[out + 2] = float(spike_take(h, w, value, 1 if over else 0, int(c[1]), float(c[2])))
    return 0


def _layout(settings: Mapping[str, Any]) -> Layout:
    return Layout(u4=SPIKE_WORDS, u2=BURST)


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    lowest = 2.0 ** math.floor(math.log2(settings["lowest"]))
    return settings["floor"], first_bin(lowest, SLICE_BITS), lowest * 2.0 ** (OCTAVES - 1)


TRANSITION_SPIKE = DetectorSpec(
    type="transition_spike",
    doc="transitions above a floor and above p99.9 of all before, and bursts of them",
    inputs={"input": "state_transition_us"},
    settings=(
        SettingSpec("floor", 4.2, "what is never a spike; 4.2 us is the source's (B1.1)", "us", lo=1e-6, hi=1e9),
        SettingSpec(
            "lowest",
            0.01,
            "where the range of 24 octaves begins, rounded down to a power of two; 0.01 gives 8 ns to 131 ms",
            "us",
            lo=1e-9,
            hi=1e6,
            shapes_memory=True,
        ),
    ),
    outputs=(
        OutputSpec("is_spike", "bool", "this transition is above the threshold", kind="bool", lo=0.0, hi=1.0),
        OutputSpec("threshold_us", "us", "the greater of floor and p99.9 before this transition", lo=0.0),
        OutputSpec("burst_count", "count", "spikes among the last 100 transitions", "count", lo=0.0, hi=float(BURST)),
        OutputSpec("over_ratio", "ratio", "this transition / threshold: above 1 in a spike", lo=0.0),
    ),
    kernel=transition_spike_kernel,
    layout=_layout,
    config=_config,
    default_scope="replica",
)
"""It belongs to the replica unless a pack narrows it: 3.4 KB and a past of 1,000 are more than one conversation has."""
