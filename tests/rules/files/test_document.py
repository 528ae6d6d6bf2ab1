"""Places of values, keys and characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.rules.files.document import Spot
from stabilitykit.rules.files.reader import read

SOURCE = b"""stabilitykit: 1
rules:
  - rule: slow
    when: itl_ms > 80 ms
    do: [{throttle: {}}, "emit metric"]
    reason:
  - {rule: other, when: 'x > ''3''', count: {at_least: 2}}
"""


@pytest.fixture(name="doc")
def _doc():
    return read(SOURCE, "pack.yaml")


@pytest.mark.parametrize(
    ("path", "spot"),
    [
        ((), Spot(1, 1, 12)),
        (("stabilitykit",), Spot(1, 15, 1)),
        (("rules",), Spot(3, 3, 1)),
        (("rules", 0), Spot(3, 5, 4)),
        (("rules", 0, "rule"), Spot(3, 11, 4)),
        (("rules", 0, "when"), Spot(4, 11, 14)),
        (("rules", 0, "do", 0), Spot(5, 10, 1)),
        (("rules", 0, "do", 1), Spot(5, 26, 13)),
        (("rules", 0, "reason"), Spot(6, 12, 1)),
        (("rules", 1), Spot(7, 5, 1)),
        (("rules", 1, "when"), Spot(7, 25, 11)),
        (("rules", 1, "count", "at_least"), Spot(7, 56, 1)),
        (("rules", 0, "severity"), Spot(3, 5, 4)),
        (("rules", 9, "when"), Spot(3, 3, 1)),
        (("rules", "0"), Spot(3, 3, 1)),
        (("machine", "states"), Spot(1, 1, 12)),
        (("stabilitykit", "deeper"), Spot(1, 15, 1)),
    ],
)
def test_marks(doc, path, spot):
    """A value knows its place; what is missing has the place of what should hold it."""
    assert doc.mark(path) == spot


@pytest.mark.parametrize(
    ("path", "spot"),
    [
        (("rules",), Spot(2, 1, 5)),
        (("rules", 1, "count"), Spot(7, 38, 5)),
        (("rules", 0), Spot(3, 5, 4)),
        (("rules", 0, "nope"), Spot(3, 5, 4)),
    ],
)
def test_marks_of_keys(doc, path, spot):
    """A key has its own place; an element of a list has no key."""
    assert doc.mark(path, key=True) == spot


@pytest.mark.parametrize(
    ("source", "offset", "line", "col"),
    [
        ("a: x > 3", 4, 1, 8),
        ("a: 'x > 3'", 4, 1, 9),
        ('a: "x > 3"', 4, 1, 9),
        ("a: 'it''s > 3'", 7, 1, 13),
        ('a: "\\u0041 > 3"', 2, 1, 12),
        ('a: "\\x41\\n > 3"', 3, 1, 12),
        ("a: >\n  one\n  two > 3", 4, 3, 3),
        ("a: >-  # why\n  one\n  two > 3", 8, 3, 7),
        ("a: |\n  one\n    two", 6, 3, 5),
        ("a: |2\n    one\n  two", 6, 3, 3),
        ("a: one\n   two\n\n   three", 4, 2, 4),
        ("a: one\n   two\n\n   three", 8, 4, 4),
        ("a: 'one\n   two'", 5, 2, 5),
        ('a: "one \\\n   two"', 4, 2, 4),
        ("a: x > 3", 5, 1, 9),
        ("a: >\n  one\n  two", 7, 3, 6),
        ("a: 'x'", 90, 1, 6),
        ("a:\n  one\n  two", 4, 3, 3),
        ("a: 12", 1, 1, 5),
        ("[a, b]", 1, 1, 2),
    ],
)
def test_characters_of_a_text(source, offset, line, col):
    """The place of a character, in every style of scalar."""
    doc = read(source.encode(), "f")
    spot = doc.spot(("a",), offset)
    assert (spot.line, spot.col) == (line, min(col, len(doc.lines[line - 1]) + 1))


@given(st.lists(st.text("xyz", min_size=1, max_size=4), min_size=1, max_size=6), st.sampled_from("'\">|p"), st.data())
def test_letters_are_found_in_every_style(words, style, data):
    """A letter of the value stands at its place in the file, however the text was folded."""
    body = "\n  ".join(words)
    source = {"p": f"a: {body}\n", ">": f"a: >\n  {body}\n", "|": f"a: |\n  {body}\n"}.get(
        style, f"a: {style}{body}{style}\n"
    )
    doc = read(source.encode(), "f")
    value = doc.root["a"]
    offset = data.draw(st.integers(0, len(value.rstrip()) - 1))
    spot = doc.spot(("a",), offset)
    if value[offset] not in " \n":
        assert doc.lines[spot.line - 1][spot.col - 1] == value[offset]


def test_problem_of_a_part(doc):
    """A problem inside a condition has its caret under the part."""
    problem = doc.problem(("rules", 0, "when"), "SK301", "unknown signal", offset=0, width=6, hint="fix it")
    assert str(problem) == (
        "pack.yaml:4:11: SK301 unknown signal\n        when: itl_ms > 80 ms\n              ^^^^^^\n    hint: fix it"
    )


def test_problem_of_a_key(doc):
    """A problem of a key underlines the key."""
    problem = doc.problem(("rules", 1, "count"), "SK201", "unknown key", key=True)
    assert (problem.line, problem.col, problem.width) == (7, 38, 5)


def test_mark_of_a_block_text():
    """A block text stands where its header stands; a folded plain one up to the end of its line."""
    doc = read(b"a: |\n  one\nb: two\n  three\n", "f")
    assert doc.mark(("a",)) == Spot(1, 4, 1)
    assert doc.mark(("b",)) == Spot(3, 4, 3)


def test_long_lines_have_no_snippet():
    """A caret in column 5,000 helps nobody; near the left a long line is cut."""
    doc = read(b"{a: 1, " + b" " * 5_000 + b"b: 2, c: 3}", "f")
    assert doc.problem(("c",), "SK201", "m").snippet == ""
    near = doc.problem(("a",), "SK201", "m")
    assert len(near.snippet) == 200
    assert near.col == 5


def test_width_stays_on_the_line(doc):
    """A caret line never leaves the source line."""
    assert doc.problem(("rules", 0, "when"), "SK401", "m", offset=13, width=90).width == 1
