"""By how much a statistical bound must be exceeded, so that a tie is a tie on every machine.

Values that are equal on paper differ by the rounding of their sums, about 1e-16 for each number added, and compiled
code may add in another order; a billionth is far above that and far below what any detector looks for.
"""

from __future__ import annotations

__all__ = ["GUARD"]

GUARD = 1e-9
"""Relative to what is compared, or absolute where that is a ratio or a logit."""
