"""Positions after tokens were dropped: which ones the kept tokens have, and how far stored keys must be turned.

The offset is the number of tokens dropped, not slides times window, and queries and keys must move together: shifting
one side only changes attention wildly (formulas B4.3). Three modes do that:

``absolute``
    Everything stays: kept tokens keep their positions, new ones go on behind them. Ends at the model's last position.
``cache_relative``
    Positions count inside the cache (StreamingLLM). For a host that stores keys unrotated and rotates them on use.
``rerotate``
    The same positions, for a host that stores rotated keys: each is turned by what it moved.

Nothing here acts: the host writes the positions and turns the keys (``rotary.rotated``, or ``StoredKeys``).

References
----------
.. [1] G. Xiao et al., "Efficient Streaming Language Models with Attention Sinks", ICLR 2024.

Examples
--------
Two sinks and the last three of nine tokens are kept; stored keys of the three move back by four:

>>> done = compensate_positions([0, 1, 6, 7, 8], mode="rerotate", n_sink=2)
>>> done.positions.tolist(), done.rotation.tolist(), done.next_position
([0, 1, 2, 3, 4], [0, 0, -4, -4, -4], 5)
>>> compensate_positions([0, 1, 6, 7, 8], is_mla=True).why
'keys are cached as one shared latent (MLA), which cannot be rotated'
"""

from __future__ import annotations

from typing import Any, Literal

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from stabilitykit.errors import UsageError
from stabilitykit.mitigations.rotary import Rope, rotated
from stabilitykit.mitigations.whole_numbers import whole_number, whole_numbers

__all__ = ["Compensation", "StoredKeys", "compensate_positions", "kept_after_shift"]

Mode = Literal["absolute", "cache_relative", "rerotate"]
MODES = ("absolute", "cache_relative", "rerotate")


@attrs.frozen(eq=False)
class Compensation:
    """What the host has to write.

    Parameters
    ----------
    positions
        Position of each kept token, int64[n].
    rotation
        Positions by which each stored key must be turned, int64[n]; 0 unless the mode is ``rerotate``.
    why
        Why nothing was compensated; "" when it was. Then ``positions`` are the old ones.
    """

    positions: NDArray[np.int64]
    rotation: NDArray[np.int64]
    why: str = ""

    @property
    def next_position(self) -> int:
        """Position of the next token."""
        return int(self.positions[-1]) + 1 if len(self.positions) else 0


def compensate_positions(
    kept: ArrayLike,
    *,
    mode: Mode = "rerotate",
    n_sink: int = 0,
    max_position: int = 163840,
    is_mla: bool = False,
    room: int = 1,
) -> Compensation:
    """Give kept tokens the positions they should have.

    Parameters
    ----------
    kept
        Present positions of the tokens that are kept, in order, int[n].
    n_sink
        First tokens that must be among them, at 0, 1, and so on.
    max_position
        Positions the model was made for.
    is_mla
        The model caches one shared latent instead of keys (DeepSeek): refused.
    room
        New tokens that must fit behind the kept ones.

    Raises
    ------
    UsageError
        A mode that does not exist, positions that are no one row of whole numbers, or numbers that are none from 0 on.
    """
    if mode not in MODES:
        raise UsageError(f"mode {mode!r} is none of {', '.join(MODES)}")
    n_sink, room = whole_number(n_sink, "n_sink"), whole_number(room, "room")
    max_position = whole_number(max_position, "max_position")
    old = whole_numbers(kept, "positions")
    if old.ndim != 1:
        raise UsageError(f"kept is one row of positions, one conversation, not {old.ndim} dimensions")
    new = old if mode == "absolute" else np.arange(len(old), dtype=np.int64)
    why = _refusal(old, new, n_sink, max_position, is_mla, room)
    none = np.zeros(len(old), np.int64)
    if why:
        return Compensation(old, none, why)
    return Compensation(new, new - old if mode == "rerotate" else none)


def _refusal(
    old: NDArray[np.int64], new: NDArray[np.int64], n_sink: int, max_position: int, is_mla: bool, room: int
) -> str:
    if is_mla:
        return "keys are cached as one shared latent (MLA), which cannot be rotated"
    if len(old) and (old[0] < 0 or (np.diff(old) <= 0).any()):
        return "the positions of the kept tokens are negative or do not increase"
    if n_sink and old[:n_sink].tolist() != list(range(n_sink)):
        return f"the first {n_sink} tokens are to stay, and not all of them were kept"
    last = (int(new[-1]) if len(new) else -1) + room
    return f"the last position would be {last}, the model has {max_position}" if last >= max_position else ""


def kept_after_shift(n_keep: int, n_left: int, n_discard: int) -> NDArray[np.int64]:
    """Give the positions that llama.cpp keeps when it shifts a slot's context.

    Its log says ``slot context shift, n_keep = .., n_left = .., n_discard = ..``: of ``n_keep + n_left`` tokens the
    first ``n_keep`` stay, the next ``n_discard`` go, and the rest moves back by as many. ``compensate_positions`` with
    mode ``rerotate`` turns this into the offsets that the server applied to its cache.

    Raises
    ------
    UsageError
        Numbers that no such line has.

    Examples
    --------
    >>> kept = kept_after_shift(n_keep=1, n_left=3998, n_discard=1999)
    >>> kept[:2].tolist(), len(kept)
    ([0, 2000], 2000)
    >>> set(compensate_positions(kept, n_sink=1).rotation[1:].tolist())
    {-1999}
    """
    for number in (n_keep, n_left, n_discard):
        whole_number(number, "each number of a shift")
    if n_discard > n_left:
        raise UsageError(f"a shift of n_keep {n_keep}, n_left {n_left}, n_discard {n_discard} cannot be")
    return np.concatenate([np.arange(n_keep), np.arange(n_keep + n_discard, n_keep + n_left)]).astype(np.int64)


@attrs.frozen(eq=False)
class StoredKeys:
    """Keys as they were first stored, and by how much each has been turned since.

    Turning the last result again and again adds up its rounding, tenfold after twenty times (formulas B4.1). Here the
    turns are added as whole numbers, exactly, and every reading turns the first keys once.

    Parameters
    ----------
    keys
        float[..., n, d], never changed.
    turned
        int64[n].
    """

    keys: NDArray[Any]
    turned: NDArray[np.int64]

    @classmethod
    def of(cls, keys: ArrayLike) -> StoredKeys:
        """Store keys that were not turned since."""
        stored = np.asarray(keys)
        if stored.ndim < 2:
            raise UsageError("keys have at least two dimensions: one for each, and their components")
        return cls(stored, np.zeros(stored.shape[-2], np.int64))

    def keep(self, places: ArrayLike) -> StoredKeys:
        """Drop all keys but those at some places."""
        at = whole_numbers(places, "places")
        return StoredKeys(self.keys[..., at, :], self.turned[at])

    def turn(self, by: ArrayLike) -> StoredKeys:
        """Turn each key by a number of positions, on top of what it was turned already.

        Parameters
        ----------
        by
            One for all, int, or one for each, int[n].

        Raises
        ------
        UsageError
            No whole numbers, or neither one nor n of them.
        """
        turns = whole_numbers(by, "turns")
        if turns.shape not in ((), self.turned.shape):
            raise UsageError(f"one turn for all or {len(self.turned)}, not {turns.shape}")
        return StoredKeys(self.keys, self.turned + turns)

    def read(self, rope: Rope) -> NDArray[Any]:
        """Give the keys as they should be now, rounded once."""
        return rotated(self.keys, self.turned, rope)
