"""Literals of params and settings, and counts of turns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.rules.syntax import SyntaxProblem, parse_literal, parse_turns


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("80 ms", 80.0, "ms"),
        ("80ms", 80.0, "ms"),
        ("7 %", 0.07, "ratio"),
        ("3", 3.0, ""),
        ("-2.5e1 C", -25.0, "C"),
        ("5 turns", 5.0, "turns"),
        ("1 turn", 1.0, "turns"),
        ("5 samples", 5.0, "samples"),
        ("true", True, "bool"),
        ("false", False, "bool"),
        ("20 tokens/s", 20.0, "tokens/s"),
        ("17 /s", 17.0, "/s"),
    ],
)
def test_literals(text, value, unit):
    """Every kind of literal of the grammar."""
    assert parse_literal(text) == (value, unit)


def test_converted_exactly():
    """A wanted unit converts without rounding twice."""
    assert parse_literal("0.0011 s", "ms") == (1.1, "ms")
    assert parse_literal("7 %", "ratio") == (0.07, "ratio")
    assert parse_literal("3", "count") == (3.0, "count")


@pytest.mark.parametrize(
    ("text", "unit", "code", "col"),
    [
        ("80", "ms", "SK411", 1),
        ("80 %", "ms", "SK411", 1),
        ("80 sec", None, "SK411", 4),
        ("80 tokens", "ms", "SK410", 1),
        ("- 80 tokens", "ms", "SK410", 3),
        ("fast", None, "SK401", 1),
        ("80 ms please", None, "SK401", 7),
        ("true or", None, "SK401", 6),
        ("08 ms", None, "SK401", 1),
        ("1_000", None, "SK401", 1),
        ("1e999 ms", None, "SK106", 1),
        ("", None, "SK401", 1),
        ("--5", None, "SK401", 2),
    ],
)
def test_bad_literals(text, unit, code, col):
    """What is no literal says why and where."""
    with pytest.raises(SyntaxProblem) as caught:
        parse_literal(text, unit)
    assert (caught.value.code, caught.value.offset + 1) == (code, col)
    assert str(caught.value).startswith(f"{col}: {code} ")


def test_turns():
    """A count of turns or samples, or a param that holds one."""
    assert parse_turns("3 turns") == (3, "turns", "")
    assert parse_turns(" 1 turn ") == (1, "turns", "")
    assert parse_turns("12 samples") == (12, "samples", "")
    assert parse_turns("params.n") == (0, "", "n")


@pytest.mark.parametrize(
    "text", ["3", "3 ms", "three turns", "2.5 turns", "-3 turns", "3 turns or", "", "drift.n", "# "]
)
def test_no_turns(text):
    """A count of turns without its word is SK412."""
    with pytest.raises(SyntaxProblem) as caught:
        parse_turns(text)
    assert caught.value.code == "SK412"
    assert "3 turns" in caught.value.hint


def place(parse, text):
    """Give the offset of a mistake, 0 when there is none."""
    try:
        parse(text)
    except SyntaxProblem as problem:
        return problem.offset
    return 0


@given(st.text(max_size=30), st.sampled_from([parse_literal, parse_turns]))
def test_only_syntax_problems(text, parse):
    """No text raises anything else."""
    assert 0 <= place(parse, text) <= len(text)
