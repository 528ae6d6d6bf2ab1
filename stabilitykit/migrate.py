"""A reload keeps memory: what has the same name in both layouts is copied, the rest starts afresh."""

from __future__ import annotations

import attrs
import numpy as np

from stabilitykit.errors import ReloadRefused
from stabilitykit.program import Program, RowLayout, Span
from stabilitykit.rules.tables import MEMORY_WORDS
from stabilitykit.session import Memory, Rows

__all__ = ["Migration", "MigrationReport", "plan_migration"]

_DTYPES = {"f8": np.float64, "u8": np.uint64, "u4": np.uint32, "u2": np.uint16}


@attrs.frozen
class MigrationReport:
    """What a reload kept.

    Parameters
    ----------
    kept, started, dropped
        Named pieces of memory that keep their values, start as new, and are gone.
    """

    kept: int
    started: int
    dropped: int
    generation: int = 0


@attrs.frozen(eq=False)
class Migration:
    """How one scope's rows become rows of the new layout."""

    pairs: tuple[tuple[Span, Span], ...]
    states: tuple[int, ...]

    def apply(self, memory: Memory, rows: Rows) -> None:
        """Move one instance into a row of the new layout."""
        old, new_at = memory.rows.view(memory.row), rows.take()
        new = rows.view(new_at)
        old_words, new_words = old.view(np.uint64), new.view(np.uint64)
        vec = memory.vec
        memory.vec, memory.vec_at = None, 0
        fresh = rows.vector and vec is not None
        if fresh:
            memory.vec = np.zeros(rows.vector, np.float32)
            memory.vec_at = memory.vec.ctypes.data
        for a, b in self.pairs:
            if a.kind == "bit":
                for k in range(MEMORY_WORDS):
                    bit = old_words[a.at + k] >> np.uint64(a.size) & np.uint64(1)
                    new_words[b.at + k] |= bit << np.uint64(b.size)
            elif a.kind == "state":
                new_words[b.at] = self.states[int(old_words[a.at])]
            elif a.kind == "vec":
                if vec is not None and memory.vec is not None:
                    memory.vec[b.at : b.at + b.size] = vec[a.at : a.at + a.size]
            else:
                view = _DTYPES[a.kind]
                new.view(view)[b.at : b.at + b.size] = old.view(view)[a.at : a.at + a.size]
        memory.rows.give(memory.row)
        memory.rows, memory.row = rows, new_at


def plan_migration(old: Program, new: Program) -> tuple[tuple[Migration, ...], MigrationReport]:
    """Match the memory of two programs by name.

    Raises
    ------
    ReloadRefused
        SK510: a state vanished and no other says ``was:`` for it.
    """
    states = _states(old, new)
    kept = started = dropped = 0
    found: list[Migration] = []
    for before, after in zip(old.rows, new.rows, strict=True):
        mine, theirs = _named(before), _named(after)
        pairs = tuple(
            (mine[name], span)
            for name, span in theirs.items()
            if name in mine and _fits(mine[name], span)
        )
        kept += len(pairs)
        started += len(theirs) - len(pairs)
        dropped += len(mine) - len(pairs)
        found.append(Migration(pairs, states))
    return tuple(found), MigrationReport(kept, started, dropped)


def _named(layout: RowLayout) -> dict[str, Span]:
    # "saved" is the block of values of a wider scope: its slots differ between programs.
    return {s.name: s for s in layout.spans if s.name not in ("saved", "known", "present", "reported")}


def _fits(a: Span, b: Span) -> bool:
    return a.kind == b.kind and (a.kind == "bit" or a.size == b.size)


def _states(old: Program, new: Program) -> tuple[int, ...]:
    names = {s.name: k for k, s in enumerate(new.pack.states)}
    was = {s.was: k for k, s in enumerate(new.pack.states) if s.was}
    found = []
    for state in old.pack.states:
        at = names.get(state.name, was.get(state.name))
        if at is None:
            raise ReloadRefused(f"SK510 state {state.name!r} is gone; name it by `was:` in the state that takes over")
        found.append(at)
    return tuple(found)
