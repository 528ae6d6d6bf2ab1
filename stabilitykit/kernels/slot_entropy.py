"""How evenly items spread over the slots of a queue: Shannon entropy from counts, bias corrected.

The plug-in entropy of n items is too small by about ``(K - 1) / (2 n ln 2)`` bits, K being the slots that hold
any: evenly spread over 64 slots, 64 items give 5.2 instead of 6 bits. Miller and Madow add that term
(5.6, and 6.0 from 256 items on; formulas B1.3).

References
----------
.. [1] G. A. Miller, "Note on the bias of information estimates", 1955.
"""

from __future__ import annotations

import math

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.pointers import Block

__all__ = ["slot_entropy", "slot_fill", "slot_items"]

_LN2 = math.log(2.0)


@kernel
def slot_items(counts: Block, slots: int) -> float:
    """Give the number of items in all slots; unknown when a slot has a negative number or there are none."""
    total = 0.0
    for i in range(slots):
        items = float(counts[i])
        if items < 0.0:
            return math.nan
        total += items
    return total if total > 0.0 else math.nan


@kernel
def slot_entropy(counts: Block, slots: int, total: float) -> float:
    """Give the corrected entropy in bits, at most that of an even spread over all slots."""
    weighted = 0.0
    used = 0
    for i in range(slots):
        items = float(counts[i])
        if items > 0.0:
            used += 1
            weighted += items * math.log(items)
    nats = math.log(total) - weighted / total
    corrected = max(nats, 0.0) + (used - 1) / (2.0 * total)
    return min(corrected, math.log(float(slots))) / _LN2


@kernel
def slot_fill(counts: Block, slots: int, total: float) -> float:
    """Give the mean slot, 0 for the first and 1 for the last: a spread has a place, too."""
    moment = 0.0
    for i in range(slots):
        moment += float(i) * float(counts[i])
    return min(moment / total / float(slots - 1), 1.0) if slots > 1 else math.nan
