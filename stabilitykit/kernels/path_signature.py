"""One number for the way an execution took: its steps, in their order, as often as they were taken.

The source folds the hashes of a path's steps with XOR. Every step that is taken an even number of times cancels out, so
a loop that runs twice leaves no trace, and the order is lost (formulas B3.2). A polynomial of the steps' hashes keeps
both, and still grows by one multiplication a step, so that a trace id can be carried along: it is the same whether a
path is signed at once or step by step.

References
----------
.. [1] R. M. Karp, M. O. Rabin, "Efficient randomized pattern-matching algorithms", IBM J. Res. Dev. 31(2), 1987.
.. [2] G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014 (the mixing).

Examples
--------
>>> a, b = 11, 12
>>> path_signature([a, b, a, b]) == path_signature([])
False
>>> path_signature([a, b]) == path_signature([b, a])
False
>>> path_signature([b, a], path_signature([a])) == path_signature([a, b, a])
True
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["path_signature"]

_MASK = (1 << 64) - 1
_FACTOR = 0x9E37_79B9_7F4A_7C15


def path_signature(steps: Iterable[int], before: int = 0) -> int:
    """Give 64 bits for a sequence of steps.

    Parameters
    ----------
    steps
        Ids of the steps, any integers; their lowest 64 bits count.
    before
        Signature of the steps before these; 0 at the start.
    """
    signature = before
    for step in steps:
        signature = (signature * _FACTOR + _mixed(step) + 1) & _MASK
    return signature


def _mixed(step: int) -> int:
    """Spread a step over 64 bits; neighbours become strangers (SplitMix64)."""
    z = (step + _FACTOR) & _MASK
    z = (z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9 & _MASK
    z = (z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB & _MASK
    return z ^ (z >> 31)
