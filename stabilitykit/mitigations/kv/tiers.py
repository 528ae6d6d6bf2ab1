"""Which tier each KV block is in, by its age, with hysteresis: a block near a border does not go to and fro.

The tiers are those of `stabilitykit.kernels.age_tiers`. A block changes its tier only when its age is
beyond the border by the margin.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import attrs

from stabilitykit.errors import UsageError
from stabilitykit.kernels.age_tiers import LAST_TIER, SECOND_TIER
from stabilitykit.kernels.block_ids import signed_id

__all__ = ["Move", "TierMap"]

_BORDERS = SECOND_TIER, LAST_TIER


@attrs.frozen
class Move:
    """A block that changed its tier."""

    block: int
    before: int
    after: int


class TierMap:
    """The tier of every block that the host told of.

    Parameters
    ----------
    margin
        How far beyond a border an age must be before a block changes over it, in [0, .15].

    Raises
    ------
    UsageError
        Another margin.

    Notes
    -----
    Block ids are whole numbers of 64 bits, read as signed, as `KVPolicy` has them.

    Attributes
    ----------
    unknown
        Ages that were no number in [0, 1]: their blocks stay where they are.

    Examples
    --------
    >>> tiers = TierMap(margin=0.05)
    >>> tiers.update({7: 0.1, 8: 0.5}), tiers.update({7: 0.32}), tiers.update({7: 0.36})
    ((Move(block=8, before=0, after=1),), (), (Move(block=7, before=0, after=1),))
    >>> tiers.update({7: 0.28}), tiers.tier(7), tiers.counts
    ((), 1, (0, 2, 0))
    """

    def __init__(self, margin: float = 0.05) -> None:
        if not 0.0 <= margin <= 0.15:
            raise UsageError("a margin is in [0, 0.15]")
        self.unknown = 0
        self._margin = margin
        self._tiers: dict[int, int] = {}

    def update(self, ages: Mapping[int, float | None]) -> tuple[Move, ...]:
        """Note the ages of blocks, each in [0, 1]; gives those that changed their tier, in the order given.

        A new block begins in tier 0; an unknown age (None) keeps, and so does what is no age.
        """
        moves = []
        for given, age in ages.items():
            block = signed_id(given)
            before = self._tiers.setdefault(block, 0)
            if age is None:
                continue
            if math.isnan(age) or not 0.0 <= age <= 1.0:
                self.unknown += 1
                continue
            after = self._after(before, age)
            if after != before:
                self._tiers[block] = after
                moves.append(Move(block, before, after))
        return tuple(moves)

    def _after(self, tier: int, age: float) -> int:
        while tier < 2 and age >= _BORDERS[tier] + self._margin:
            tier += 1
        while tier > 0 and age < _BORDERS[tier - 1] - self._margin:
            tier -= 1
        return tier

    def tier(self, block: int) -> int:
        """Give a block's tier, 0 for one nobody told of."""
        return self._tiers.get(signed_id(block), 0)

    def inside(self, tier: int) -> Iterator[int]:
        """Give the blocks of a tier, in the order in which they were first told of."""
        return (block for block, found in self._tiers.items() if found == tier)

    def forget(self, block: int) -> None:
        """Drop a block that is no longer cached; one that is not known is no error."""
        self._tiers.pop(signed_id(block), None)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Blocks in each tier."""
        found = list(self._tiers.values())
        return (found.count(0), found.count(1), found.count(2))
