"""When each KV block was last used and how often, in a bounded table.

A block's place is found by hash among PROBES neighbours; when all are taken, the one that was not
used for longest makes room. So the table holds the recent blocks, never more than its slots.
"""

from __future__ import annotations

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.pointers import Block

__all__ = ["block_tag", "touch_block"]

PROBES = 8
_WORD = 0xFFFF_FFFF
_MOST = 0xFFFF


@kernel
def block_tag(block: int) -> int:
    """Fold a 64-bit block id to 32 well-mixed bits, never 0; ids below 2**32 keep apart."""
    tag = (block & _WORD) ^ ((((block >> 32) & _WORD) * 0x7FEB_352D) & _WORD)
    for _ in range(2):
        tag = ((tag ^ (tag >> 16)) * 0x045D_9F3B) & _WORD
    tag ^= tag >> 16
    return tag if tag != 0 else 1


@kernel
def touch_block(h: Block, w: Block, slots: int, block: int, now: int) -> int:
    """Note one access at time ``now`` (from 1 on); gives the slot.

    Parameters
    ----------
    h
        Tags in ``h[0:slots]``, time of the last access in ``h[slots:2 * slots]``, 0 for a free slot.
    w
        Accesses by slot, the first one included, at most 65,535; at most one per time.
    """
    tag = block_tag(block)
    place = tag % slots
    oldest = place
    for k in range(min(PROBES, slots)):
        s = (place + k) % slots
        last = int(h[slots + s])
        if last != 0 and h[s] == tag:
            if last != now:
                w[s] = min(int(w[s]) + 1, _MOST)
                h[slots + s] = now
            return s
        if last < int(h[slots + oldest]):
            oldest = s
    h[oldest] = tag
    h[slots + oldest] = now
    w[oldest] = 1
    return oldest
