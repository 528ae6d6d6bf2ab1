"""Is a bounded queue always found full? Do receivers wait for what is there? Signs of back-pressure.

Inputs
------
occupancy
    How often a producer found the queue that full, by slot: an array of m counts, the first slot for (nearly)
    empty, the last for full (``queue_occupancy``). Of 64 items or more; fewer always look narrow, for the
    entropy of n items is at most log2(n).
recv
    Time to receive an item that was there (``queue_recv_ms``).

A queue that breathes is found in many conditions, one under pressure in one only. ``entropy_bits`` is the
Shannon entropy of the counts with the bias correction of Miller and Madow; below 2.3 bits of 6 the queue
lives in 5 of its 64 slots. ``normalised_ratio`` is the share of the greatest possible entropy, for queues of
other sizes: 2.3 / 6 = 0.383. A narrow spread may as well be that of a queue which is always empty, so
``fill_ratio`` says where it is: 0 at the empty end, 1 at the full one.

``recv_median_ms`` is the median of the last ``window`` samples that had a value: one stall does not move it.
How many puts were refused a second is a number that the host has already: a rule, no detector.

When not to use it
------------------
On an unbounded queue, which is never full.

References
----------
.. [1] formulas B1.3: even spreads over 64 slots never fall below 2.3 bits from 64 items on (500 runs).
.. [2] G. A. Miller, "Note on the bias of information estimates", 1955.

Examples
--------
A queue of 8 slots that breathes, then one that is full nine times of ten:

>>> from stabilitykit.detectors.queue_pressure import QUEUE_PRESSURE
>>> from stabilitykit.detectors.trace import trace
>>> turns = trace(QUEUE_PRESSURE, [[14, 12, 13, 15, 14, 13, 16, 12], [0, 0, 0, 0, 1, 2, 7, 90], [0, 0, 3]])
>>> [round(out["normalised_ratio"], 2) for out in turns]
[1.0, 0.2, nan]
>>> [round(out["entropy_bits"], 2) for out in turns], [round(out["fill_ratio"], 2) for out in turns]
([3.0, 0.61, nan], [0.5, 0.98, nan])
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.median import median_add, median_size
from stabilitykit.kernels.pointers import Block
from stabilitykit.kernels.slot_entropy import slot_entropy, slot_fill, slot_items
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["QUEUE_PRESSURE", "queue_pressure_kernel"]

_LN2 = math.log(2.0)


@kernel
def queue_pressure_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Take one sample; c is ``least_items, window``."""
    slots = int(n[io[0]])
    recv = float(x[io[1]])
    out = io[2]
    for k in range(5):
        x[out + k] = math.nan
    if slots > 0:
        items = slot_items(ids[io[0]], slots)
        if items >= float(c[0]):
            bits = slot_entropy(ids[io[0]], slots, items)
            x[out] = bits
            if slots > 1:
                x[out + 1] = min(bits / (math.log(float(slots)) / _LN2), 1.0)
                x[out + 2] = slot_fill(ids[io[0]], slots, items)
            x[out + 3] = items
    if not math.isnan(recv):
        middle = median_add(f, int(c[1]), recv)
        if 2.0 * float(f[0]) > float(c[1]):
            x[out + 4] = middle
    return 0


def _layout(settings: Mapping[str, Any]) -> Layout:
    return Layout(f8=median_size(settings["window"]))


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    return float(settings["least_items"]), float(settings["window"])


QUEUE_PRESSURE = DetectorSpec(
    type="queue_pressure",
    doc="slot-occupancy entropy of a bounded queue, and the median time to receive from it",
    inputs={"occupancy": "queue_occupancy", "recv": "queue_recv_ms"},
    settings=(
        SettingSpec(
            "least_items", 64, "items below which the spread is unknown (B1.3)", kind="count", lo=1, hi=1_000_000
        ),
        SettingSpec(
            "window",
            9,
            "samples of the median, known from more than half of them on; odd, so it is a value that was seen",
            kind="count",
            lo=1,
            hi=64,
            shapes_memory=True,
        ),
    ),
    outputs=(
        OutputSpec("entropy_bits", "bits", "entropy over the slots, bias corrected", lo=0.0, hi=64.0),
        OutputSpec("normalised_ratio", "ratio", "entropy / that of an even spread", lo=0.0, hi=1.0),
        OutputSpec("fill_ratio", "ratio", "mean slot: 0 empty, 1 full", lo=0.0, hi=1.0),
        OutputSpec("items_count", "count", "items that were counted", "count", lo=0.0),
        OutputSpec("recv_median_ms", "ms", "median time to receive, this sample included", lo=0.0),
    ),
    kernel=queue_pressure_kernel,
    layout=_layout,
    config=_config,
)
"""See the module."""
