"""The bits that a cache is stored in: fewer as soon as they are asked for, more only below 85 % of memory (A5).

Above how much memory that is asked for is a rule's to say (pack ``gpu``: 92 %); the distance keeps it from fluttering.
"""

from __future__ import annotations

import math

__all__ = ["FULL_BITS", "LEAVE", "Precision"]

LEAVE = 0.85
FULL_BITS = 16


class Precision:
    """The bits per value that a cache is stored in.

    Parameters
    ----------
    bits
        Bits at full precision.

    Examples
    --------
    >>> cache = Precision()
    >>> [(usage, cache.ask(4, usage)) for usage in (0.93, 0.87, 0.85)]
    [(0.93, 4), (0.87, 4), (0.85, 4)]
    >>> cache.relax(0.86), cache.relax(0.85), cache.relax(0.849)
    (4, 4, 16)
    """

    def __init__(self, bits: int = FULL_BITS) -> None:
        self.full = self.bits = bits

    def ask(self, bits: int, usage: float | None = None) -> int:
        """Ask for a number of bits; gives those in force.

        Parameters
        ----------
        bits
            Fewer go into force at once. More only when memory in use is known to be below 85 %.
        usage
            Share of memory in use, in [0, 1]; None where it is not known.
        """
        wanted = min(bits, self.full)
        if wanted < self.bits or (usage is not None and usage < LEAVE):
            self.bits = wanted
        return self.bits

    def relax(self, usage: float | None) -> int:
        """Go back to full precision when memory in use is below 85 %; gives the bits in force."""
        if usage is None or math.isnan(usage):
            return self.bits
        return self.ask(self.full, usage)
