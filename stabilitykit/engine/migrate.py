"""A reload keeps memory: what has the same name in both layouts is copied, the rest starts afresh."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator

import attrs

from stabilitykit.compiled import header as c
from stabilitykit.compiled.program import Program, RowLayout, Span
from stabilitykit.errors import ReloadRefused
from stabilitykit.rules.pack import Pack
from stabilitykit.rules.tables import MEMORY_WORDS
from stabilitykit.session import Memory, Rows

__all__ = ["Migration", "MigrationReport", "plan_migration", "state_indices", "value_slots"]

_BYTES = {"f8": 8, "u8": 8, "u4": 4, "u2": 2}
_WORDS = {"bit": MEMORY_WORDS, "flag": 1}


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
    """How one scope's rows become rows of the new layout.

    Parameters
    ----------
    moves
        Pieces to copy: bytes into the old row, into the new one, and how many.
    bits
        Bits to copy: first word in the old row and in the new one, words, shift to the left, mask.
    vectors
        Pieces of the vector block, in float32 elements.
    machine
        Where the state stands in either row.
    states
        Index of a state to its index in the new pack.
    is_wide
        A replica or device has its vector block from birth, a session with its first array.
    """

    moves: tuple[tuple[int, int, int], ...]
    bits: tuple[tuple[int, int, int, int, int], ...]
    vectors: tuple[tuple[int, int, int], ...]
    machine: tuple[int, int]
    states: tuple[int, ...]
    is_wide: bool

    def apply(self, memory: Memory, rows: Rows) -> None:
        """Move one instance into a row of the new layout."""
        new_at = rows.take()
        for source, target, size in self.moves:
            ctypes.memmove(new_at + target, memory.row + source, size)
        old, new = memory.rows.words(memory.row), rows.words(new_at)
        for a, b, count, shift, mask in self.bits:
            for k in range(count):
                bits = old[a + k] & mask
                new[b + k] |= bits << shift if shift >= 0 else bits >> -shift
        new[self.machine[1]] = self.states[old[self.machine[0]]]
        vec = memory.vec
        memory.vec, memory.vec_at = None, 0
        memory.rows.give(memory.row)
        memory.rows, memory.row = rows, new_at
        block = memory.need_vector() if self.is_wide or vec is not None else None
        if block is not None and vec is not None:
            for source, target, size in self.vectors:
                block[target : target + size] = vec[source : source + size]


def plan_migration(old: Program, new: Program) -> tuple[tuple[Migration, ...], MigrationReport]:
    """Match the memory of two programs by name.

    Raises
    ------
    ReloadRefused
        SK510: a state vanished and no other says ``was:`` for it.
    """
    states = _states(old.pack, new.pack)
    kept = started = dropped = 0
    found: list[Migration] = []
    for scope, (before, after) in enumerate(zip(old.rows, new.rows, strict=True)):
        mine, theirs = _named(before), _named(after)
        pairs = [(mine[name], span) for name, span in theirs.items() if name in mine and _fits(mine[name], span)]
        kept += len(pairs)
        started += len(theirs) - len(pairs)
        dropped += len(mine) - len(pairs)
        mine, theirs = _unnamed(old, scope), _unnamed(new, scope)
        pairs += [(mine[name], span) for name, span in theirs.items() if name in mine]
        machine = (before.machine, after.machine)
        found.append(Migration(_moves(pairs), _bits(pairs), _vectors(pairs), machine, states, scope > 0))
    return tuple(found), MigrationReport(kept, started, dropped)


def _named(layout: RowLayout) -> dict[str, Span]:
    # What stands in these blocks has no name of its own: see _unnamed.
    return {s.name: s for s in layout.spans if s.name not in ("saved", "known", "present", "reported")}


def _unnamed(program: Program, scope: int) -> dict[str, Span]:
    """Give the values of a wider scope's last sample, and which signals were ever known and reported.

    They follow from the pack, so the report does not count them.
    """
    layout = program.rows[scope]
    found: dict[str, Span] = {}
    names = [s.spec.name for s in program.scalars] + [a.spec.name for a in program.arrays]
    for k, name in enumerate(names):
        found[f"known:{name}"] = Span("", "flag", layout.known + (k >> 6), k & 63)
        found[f"reported:{name}"] = Span("", "flag", layout.reported + (k >> 6), k & 63)
    if scope:
        head = program.ti[scope * c.SCOPE_HEADER : (scope + 1) * c.SCOPE_HEADER]
        start, size, saved = int(head[c.S_BLOCK]), int(head[c.S_BLOCK_SIZE]), int(head[c.S_SAVED])
        for name, slot in value_slots(program):
            if start <= slot < start + size:
                found[name] = Span("", "f8", saved + slot - start, 1)
    return found


def value_slots(program: Program) -> Iterator[tuple[str, int]]:
    """Name the values of a pack, as a reload tells which are the same, and where they stand."""
    memory = {d.id: d.memory or d.id for d in program.detectors}
    for name, slot in program.slots.items():
        detector, _, output = name.partition(".")
        yield (f"output:{memory[detector]}.{output}" if output else f"signal:{name}"), slot
    yield from ((f"node:{scope}:{text}", slot) for (scope, text), slot in program.node_slots.items())
    for rule_id, slot in program.rule_slots.items():
        yield f"rule:{program.pack.rule(rule_id).memory or rule_id}", slot


def _fits(a: Span, b: Span) -> bool:
    return a.kind == b.kind and (a.kind in _WORDS or a.size == b.size)


def _moves(pairs: Iterable[tuple[Span, Span]]) -> tuple[tuple[int, int, int], ...]:
    """Join neighbours: a session whose pack did not change is a few pieces, not hundreds."""
    plain = [(a.at, b.at, a.size, _BYTES[a.kind]) for a, b in pairs if a.kind in _BYTES]
    joined: list[tuple[int, int, int]] = []
    for source, target, size in sorted((a * unit, b * unit, count * unit) for a, b, count, unit in plain):
        if joined and joined[-1][0] + joined[-1][2] == source and joined[-1][1] + joined[-1][2] == target:
            joined[-1] = (*joined[-1][:2], joined[-1][2] + size)
        elif size:
            joined.append((source, target, size))
    return tuple(joined)


def _bits(pairs: Iterable[tuple[Span, Span]]) -> tuple[tuple[int, int, int, int, int], ...]:
    masks: dict[tuple[int, int, int, int], int] = {}
    for a, b in pairs:
        if a.kind in _WORDS:
            key = (a.at, b.at, _WORDS[a.kind], b.size - a.size)
            masks[key] = masks.get(key, 0) | 1 << a.size
    return tuple((*key, mask) for key, mask in masks.items())


def _vectors(pairs: Iterable[tuple[Span, Span]]) -> tuple[tuple[int, int, int], ...]:
    return tuple((a.at, b.at, a.size) for a, b in pairs if a.kind == "vec" and a.size)


def state_indices(old: Pack, new: Pack) -> list[int | None]:
    """Give the new index of each old state; None where neither it nor a ``was:`` of it is there."""
    names = {s.name: k for k, s in enumerate(new.states)}
    was = {s.was: k for k, s in enumerate(new.states) if s.was}
    return [names.get(state.name, was.get(state.name)) for state in old.states]


def _states(old: Pack, new: Pack) -> tuple[int, ...]:
    found = []
    for state, at in zip(old.states, state_indices(old, new), strict=True):
        if at is None:
            raise ReloadRefused(f"SK510 state {state.name!r} is gone; name it by `was:` in the state that takes over")
        found.append(at)
    return tuple(found)
