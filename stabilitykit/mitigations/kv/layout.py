"""Where everything of a cache policy lies in its two blocks of memory: one of int64, one of float64.

The int64 block is ``header | nodes | marks | table | heap | out | order | moved | visits``, the float64 block is
``settings | node floats | survival tables``. Slots of nodes count from 1; slot 0 is the sentinel of the list of
residents, the last slot that of the list of ghosts.
"""

from __future__ import annotations

__all__: list[str] = []

# Header of the int64 block.
(
    CAPACITY, MOST_GHOSTS, MARKS, TABLE, MASK, HEAP, OUT, ORDER, MOVED, VISITS, SIZE, GHOSTS, FREE, SERIAL, HEAPED,
    OUT_N, POLICY, HAND, K, BYPASS, KEYED, ORDERED, MOVED_N, OP, ADMITTED, GHOST_LIST, VISITED, RING, EVERY, UNTIL,
    FLOATS, REUSED, RISKED, LOWS, INDEX, HAZARDS, MODE, UNUSED, FRESH, GROWN,
) = range(40)  # fmt: skip
HEADER = 40
"""Its length."""

# Words of a node: one cache line.
KEY, PARENT, PREV, NEXT, KIDS, PINS, STATE, STAMP = range(8)
WORDS = 8
RESIDENT, GHOST, LOOSE = 1, 2, 3
"""States of a node; 0 is free."""

# Further words of a node, for policies that score.
COUNT, POS, CLASS, VISIT, CONTENT, IS_MOVED, LEVEL = range(7)
MARK_WORDS = 7

# Floats of a node; the last K references follow, the latest first.
K1, K2, DEPTH, TIME, RANK, BORN, REFERENCES = range(7)

# Settings in the float64 block.
NOW, ALPHA, DECAY, PRIOR, WEIGHTS = range(5)
CONTENTS = 8
TTLS = WEIGHTS + CONTENTS
SETTINGS = TTLS + CONTENTS

LRU, SIEVE, FIFO, LFU, LRU_K, SLRU, HYBRID, SURVIVAL, BELADY = range(9)
"""Policies."""
REQUEST, TOUCH, ADMIT, EVICT, DROP, PIN, UNPIN = range(7)
"""Operations."""

BUCKETS = 48
"""Ages are told apart by thirds of an octave; the last bucket is open."""
COARSE, FINE = 12, 24
"""Classes that the survival index tells apart, and the finer ones that it makes of each."""
CLASSES = COARSE * (1 + FINE)
