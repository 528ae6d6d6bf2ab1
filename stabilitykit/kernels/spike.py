"""Values above nearly all of their past: a bound at p99.9, and how many of the last hundred broke it.

One healthy value in a thousand lies above its p99.9, so a single spike is a signal and no trip; three in a
hundred come by chance once in 6,700 (formulas B1.1).
"""

from __future__ import annotations

import math

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.histogram import (
    histogram_add,
    histogram_bin,
    histogram_halve,
    histogram_size,
    histogram_value,
)
from stabilitykit.kernels.pointers import Block

__all__ = ["BURST", "OCTAVES", "SLICE_BITS", "SPIKE_WORDS", "spike_bound", "spike_take"]

OCTAVES = 24
SLICE_BITS = 5
COUNT = histogram_size(OCTAVES, SLICE_BITS)
"""Place of the number of values, behind the histogram."""
TOO_HIGH, SEEN, SPIKES = COUNT + 1, COUNT + 2, COUNT + 3
"""Places of: values above the range, values ever seen (modulo the burst window), spikes in that window."""
SPIKE_WORDS = COUNT + 4
"""uint32 elements."""
BURST = 100
"""Values in the burst window: one uint16 each."""
LEAST = 1000
HALVE_AT = 1 << 20
_GUARD = 1.0 + 2.0 ** -(SLICE_BITS + 1)  # the upper end of the bin: what shares it is no higher


@kernel
def spike_bound(h: Block, top: float, floor: float) -> float:
    """Give what a value must exceed to be a spike: ``floor``, from 1,000 values on at least their p99.9.

    Unknown when p99.9 lies above the range of the histogram, whose top octave begins at ``top``.
    """
    n = int(h[COUNT])
    if n < LEAST:
        return floor
    from_top = n - (n * 999 + 999) // 1000 + 1
    if from_top <= int(h[TOO_HIGH]):
        return math.nan
    return max(floor, histogram_value(h, from_top, top, OCTAVES, SLICE_BITS) * _GUARD)


@kernel
def spike_take(h: Block, w: Block, value: float, spike: int, base: int, top: float) -> int:
    """Take a value in; gives how many of the last hundred, this one among them, were spikes."""
    place = int(h[SEEN])
    spikes = int(h[SPIKES]) + spike - int(w[place])
    w[place] = spike
    h[SPIKES] = spikes
    h[SEEN] = (place + 1) % BURST
    histogram_add(h, histogram_bin(value, base, OCTAVES, SLICE_BITS), OCTAVES, SLICE_BITS)
    if value >= 2.0 * top:
        h[TOO_HIGH] = int(h[TOO_HIGH]) + 1
    n = int(h[COUNT]) + 1
    h[COUNT] = n
    if n >= HALVE_AT:
        h[COUNT] = histogram_halve(h, OCTAVES, SLICE_BITS)
        h[TOO_HIGH] = int(h[TOO_HIGH]) >> 1
    return spikes
