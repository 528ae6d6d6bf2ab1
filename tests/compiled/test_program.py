"""Layout: slices never overlap, slots are unique, and what is too large is refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from stabilitykit.compiled import header as c
from stabilitykit.compiled.layout import Blocks, RowGrower, Span
from stabilitykit.compiled.program import Program, build_program
from stabilitykit.detectors import DETECTORS
from stabilitykit.errors import PackError
from stabilitykit.rules.load import load_pack
from stabilitykit.rules.tables import MEMORY_WORDS
from tests.naive.fakes import FAKES
from tests.naive.random_packs import random_pack

WIDTH = {"f8": 8, "u8": 8, "state": 8, "u4": 4, "u2": 2}
SHIPPED = ("base", "latency", "context", "intent", "chat")


def programs() -> list[Program]:
    """Lay the shipped packs and some random ones out."""
    packs = [load_pack(name, detectors=DETECTORS) for name in SHIPPED]
    packs += [random_pack(seed, detectors=FAKES) for seed in range(40)]
    return [build_program(pack, row_limit=1 << 20, vector_limit=1 << 22) for pack in packs]


def pieces(spans: tuple[Span, ...]) -> list[tuple[int, int, str]]:
    """Give first byte, last byte and name of each piece of a row."""
    return sorted((s.at * WIDTH[s.kind], (s.at + s.size) * WIDTH[s.kind], s.name) for s in spans if s.kind in WIDTH)


def test_pieces_of_a_row_are_disjoint() -> None:
    """Detectors, rules, windows, machine: nobody writes into another's memory."""
    for program in programs():
        for row in program.rows:
            found = [p for p in pieces(row.spans) if p[0] != p[1]]
            assert all(a[1] <= b[0] for a, b in pairwise(found)), program.pack.name
            assert all(last <= row.nbytes for _, last, _ in found)
            vectors = sorted((s.at, s.at + s.size) for s in row.spans if s.kind == "vec")
            assert all(a[1] <= b[0] for a, b in pairwise(vectors))
            assert all(last <= row.vector for _, last in vectors)


def test_every_rule_has_a_bit_of_its_own_in_words_of_its_own() -> None:
    """Two rules never share a bit, and rule words stand behind each other in the row."""
    for program in programs():
        for row, tables in zip(program.rows, program.rules, strict=True):
            bits = [(s.at, s.size) for s in row.spans if s.kind == "bit"]
            assert len(set(bits)) == len(bits) == len(tables.bits)
            starts = sorted({at for at, _ in bits})
            assert all((b - a) % MEMORY_WORDS == 0 for a, b in pairwise(starts))


def test_values_are_unique_and_literals_last() -> None:
    """Signals, outputs and terms have slots below the literals, which never change."""
    for program in programs():
        slots = [*program.slots.values(), *program.node_slots.values(), *program.rule_slots.values()]
        assert len(set(slots)) == len(slots)
        assert all(0 <= s < program.live for s in slots)
        assert np.isnan(program.values[: program.live]).all()
        assert not np.isnan(program.values[max(program.live, 1) :]).any()  # an empty vector has one place


def test_blocks_of_values_cover_the_vector() -> None:
    """The block of each scope is where its signals are."""
    for program in programs():
        end = 0
        for scope in range(3):
            hb = scope * c.SCOPE_HEADER
            assert program.ti[hb + c.S_BLOCK] == end
            end += int(program.ti[hb + c.S_BLOCK_SIZE])
        assert end == program.live


def test_the_copy_of_the_rule_words_is_behind_everything() -> None:
    """What a decision carries of the rules' memory does not lie over its words or values."""
    for program in programs():
        assert program.ti[c.G_COPY] == program.out_words + program.values.size
        assert program.ti[c.G_COPY_SIZE] == program.rules[0].copied


@pytest.mark.parametrize(
    ("limits", "text"),
    [({"row_limit": 64}, "session row takes"), ({"row_limit": 1 << 20, "vector_limit": 64}, "session's vectors take")],
)
def test_too_large_is_refused(limits: dict[str, int], text: str) -> None:
    """SK604 says what is over which limit."""
    with pytest.raises(PackError, match=text) as caught:
        build_program(load_pack("chat", detectors=DETECTORS), **limits)
    assert {p.code for p in caught.value.problems} == {"SK604"}


def test_slots_are_handed_out_block_by_block() -> None:
    """A slot is known before the sizes of the blocks are, its place only afterwards."""
    blocks = Blocks()
    given = [blocks(k) for k in (1, 0, 1, 3, 0, 2)]
    assert [blocks.resolve(slot) for slot in given] == [2, 0, 3, 5, 1, 4]


def test_a_row_starts_as_it_was_told() -> None:
    """Pieces without a first value are zero bytes."""
    row = RowGrower()
    assert [row.take("a", "f8", 2), row.take("", "u8", 3), row.take("b", "f8", 1, np.nan)] == [0, 2, 5]
    np.testing.assert_array_equal(row.template(), [0, 0, 0, 0, 0, np.nan])
    assert row.spans == [Span("a", "f8", 0, 2), Span("b", "f8", 5, 1)]
