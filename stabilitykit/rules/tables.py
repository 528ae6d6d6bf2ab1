"""Rules as tables: strata of terms, atoms slot by slot, rule memory bit by bit.

Loading compiles nothing. One word of 64 rules keeps all its memory bit-sliced: ``on``,
``episode``, ``expired``, and four counters of eight bits (streak, keep, cool, blind), so a
step over 64 rules is a few dozen word operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

import attrs

from stabilitykit.kernels.blob import Blob
from stabilitykit.rules.lower import Item, ScopeProgram
from stabilitykit.rules.pack import Rule

__all__ = ["CONSTANT_WORDS", "MEMORY_WORDS", "RULE_HEADER", "STREAK_WORDS", "RuleTables", "build_rule_tables"]

# Offsets of a scope's rule section in its part of the int32 header.
(
    R_STRATA, R_WORDS, R_TERMS, R_TERM_OF, R_IDX, R_SLOT, R_SLOT_OF, R_PERM, R_ROW, R_ROW_OF,
    R_WORD_OF, R_COUNT, R_COUNT_OF, R_REF, R_REF_OF, R_SIGN, R_BOUND, R_CONST, R_HISTORY,
    R_TERM_WORDS, R_LEVEL,
) = range(21)  # fmt: skip
RULE_HEADER = 21

# Memory of one word of rules, in uint64 words.
(M_ON, M_EPISODE, M_EXPIRED) = range(3)
M_STREAK, M_KEEP, M_COOL, M_BLIND = 3, 11, 19, 27
MEMORY_WORDS = 35

# Constants of one word of rules.
K_FOR, K_KEEP, K_COOL, K_LIMIT = 0, 8, 16, 24
(K_HOLD, K_FIRE, K_COUNT, K_REAL) = range(32, 36)
CONSTANT_WORDS = 36


STREAK_WORDS = 8
"""Words of a copy of the streaks, for each word of rules; the histories follow."""


@attrs.define
class RuleTables:
    """What the engine must know about one scope's tables.

    Parameters
    ----------
    bits
        Rule id to its bit in the matched, unknown and fired words.
    words
        Number of 64-bit words of rules.
    f8, u8
        Memory in 8-byte units; float64 memory starts as NaN, words as zero.
    atoms, levels
        Scratch sizes.
    history
        Where the histories of ``count`` rules start in the uint64 memory: they are its end.
    memory
        (name, kind, offset, length[, bit]) of everything that survives a reload.
    """

    bits: dict[str, int]
    words: int
    f8: int
    u8: int
    atoms: int
    levels: int
    history: int
    memory: list[tuple[str, str, int, int]]

    @property
    def copied(self) -> int:
        """Words of a copy of what explains a match: streaks, then histories."""
        return STREAK_WORDS * self.words + self.u8 - self.history


def build_rule_tables(program: ScopeProgram, blob: Blob, header: int, resolve: Callable[[int], int]) -> RuleTables:
    """Write one scope's tables into the blob.

    Parameters
    ----------
    header
        Where this scope's rule section of the int32 header starts.
    resolve
        Gives the final place of an encoded slot.
    """
    head = blob.header
    strata = 1 + max(
        max((t.stratum for t in program.terms), default=0), max((i.stratum for i in program.items), default=0)
    )
    by_stratum = [[i for i in program.items if i.stratum == s] for s in range(strata)]
    for items in by_stratum:
        items.sort(key=lambda i: -len(i.clauses))
    head[header + R_STRATA] = strata
    _write_terms(program, blob, header, resolve, strata)
    atoms, levels = _write_atoms(by_stratum, blob, header, resolve)
    placed = _place(by_stratum, blob, header)
    words = len(placed)
    head[header + R_WORDS] = words
    head[header + R_LEVEL] = levels
    _write_constants(placed, blob, header)
    histories, memory = _write_counts(placed, blob, header, words * MEMORY_WORDS + program.u8)
    _write_references(placed, blob, header, resolve)
    head[header + R_TERM_WORDS] = words * MEMORY_WORDS
    head[header + R_HISTORY] = words * MEMORY_WORDS + program.u8
    bits = {
        item.rule.id: 64 * w + b
        for w, items in enumerate(placed)
        for b, item in enumerate(items)
        if item.rule is not None
    }
    memory += [
        (name, kind, at + (words * MEMORY_WORDS if kind == "u8" else 0), size)
        for name, kind, at, size in program.memory
    ]
    return RuleTables(
        bits,
        words,
        program.f8,
        words * MEMORY_WORDS + program.u8 + histories,
        atoms,
        levels,
        words * MEMORY_WORDS + program.u8,
        memory,
    )


def _write_terms(program: ScopeProgram, blob: Blob, header: int, resolve: Callable[[int], int], strata: int) -> None:
    flat: list[int] = []
    starts = [0]
    for s in range(strata):
        # Terms were made operands first, so the order within a stratum is already right.
        for t in program.terms:
            if t.stratum == s:
                flat += [t.op, resolve(t.dst), resolve(t.a), resolve(t.b), t.mem, t.n]
        starts.append(len(flat) // 6)
    blob.header[header + R_TERMS] = blob.ints(flat)
    blob.header[header + R_TERM_OF] = blob.ints(starts)


def _write_atoms(
    by_stratum: Sequence[Sequence[Item]], blob: Blob, header: int, resolve: Callable[[int], int]
) -> tuple[int, int]:
    """Write atoms slot-major: the k-th atom of every clause that has one stands side by side."""
    index: list[int] = []
    sign: list[float] = []
    bound: list[float] = []
    slot: list[int] = []
    slot_of = [0]
    perm: list[int] = []
    row: list[int] = []
    row_of = [0]
    widest = 0
    for items in by_stratum:
        clauses = [list(dict.fromkeys(c)) for i in items for c in i.clauses]
        order = sorted(range(len(clauses)), key=lambda q: -len(clauses[q]))
        place = {q: p for p, q in enumerate(order)}
        slot.append(len(index))
        for k in range(max(map(len, clauses), default=0)):
            for q in order:
                if len(clauses[q]) > k:
                    s, sg, c = clauses[q][k]
                    index.append(resolve(s))
                    sign.append(sg)
                    bound.append(c)
            slot.append(len(index))
        slot_of.append(len(slot))
        first = [0, *accumulate(len(i.clauses) for i in items)]
        row.append(len(perm))
        for k in range(max((len(i.clauses) for i in items), default=0)):
            perm += [place[first[j] + k] for j, i in enumerate(items) if len(i.clauses) > k]
            row.append(len(perm))
        row_of.append(len(row))
        widest = max(widest, len(clauses))
    head = blob.header
    head[header + R_IDX] = blob.ints(index)
    head[header + R_SLOT] = blob.ints(slot)
    head[header + R_SLOT_OF] = blob.ints(slot_of)
    head[header + R_PERM] = blob.ints(perm)
    head[header + R_ROW] = blob.ints(row)
    head[header + R_ROW_OF] = blob.ints(row_of)
    head[header + R_SIGN] = blob.floats(sign)
    head[header + R_BOUND] = blob.floats(bound)
    return widest, widest


def _place(by_stratum: Sequence[Sequence[Item]], blob: Blob, header: int) -> list[list[Item]]:
    """Give each stratum its own words of 64 items."""
    words: list[list[Item]] = []
    word_of = [0]
    for items in by_stratum:
        words += [list(items[k : k + 64]) for k in range(0, len(items), 64)]
        word_of.append(len(words))
    blob.header[header + R_WORD_OF] = blob.ints(word_of)
    return words


def _planes(items: Sequence[Item], value: Callable[[Rule], int]) -> list[int]:
    planes = [0] * 8
    for b, item in enumerate(items):
        number = value(item.rule) if item.rule is not None else 0
        while number:
            planes[number.bit_length() - 1] |= 1 << b
            number ^= 1 << number.bit_length() - 1
    return planes


def _mask(items: Sequence[Item], holds: Callable[[Rule], bool]) -> int:
    return sum(1 << b for b, item in enumerate(items) if item.rule is not None and holds(item.rule))


def _write_constants(words: Sequence[Sequence[Item]], blob: Blob, header: int) -> None:
    flat: list[int] = []
    for items in words:
        flat += _planes(items, lambda r: 255 if r.count else r.for_turns)
        flat += _planes(items, lambda r: r.keep_for)
        flat += _planes(items, lambda r: r.cooldown)
        flat += _planes(items, lambda r: r.hold_limit)
        flat.append(_mask(items, lambda r: r.on_missing == "hold"))
        flat.append(_mask(items, lambda r: r.on_missing == "fire"))
        flat.append(_mask(items, lambda r: r.count is not None))
        flat.append(_mask(items, lambda r: True))
    blob.header[header + R_CONST] = blob.words(flat)


def _write_counts(
    words: Sequence[Sequence[Item]], blob: Blob, header: int, history: int
) -> tuple[int, list[tuple[str, str, int, int]]]:
    flat: list[int] = []
    starts = [0]
    memory: list[tuple[str, str, int, int]] = []
    for w, items in enumerate(words):
        for b, item in enumerate(items):
            if item.rule is None:
                continue
            memory.append((item.rule.memory or item.rule.id, "bit", w * MEMORY_WORDS, b))
            if item.rule.count:
                memory.append((f"{item.rule.memory or item.rule.id}:history", "u8", history + len(flat) // 3, 1))
                flat += [b, *item.rule.count]
        starts.append(len(flat) // 3)
    blob.header[header + R_COUNT] = blob.ints(flat)
    blob.header[header + R_COUNT_OF] = blob.ints(starts)
    return len(flat) // 3, memory


def _write_references(words: Sequence[Sequence[Item]], blob: Blob, header: int, resolve: Callable[[int], int]) -> None:
    """Write where verdicts go that others read: hidden rules and rules under ``rule:``."""
    flat: list[int] = []
    starts = [0]
    for items in words:
        for b, item in enumerate(items):
            if item.out >= 0:
                flat += [b, resolve(item.out), int(item.rule is None)]
        starts.append(len(flat) // 3)
    blob.header[header + R_REF] = blob.ints(flat)
    blob.header[header + R_REF_OF] = blob.ints(starts)
