"""What a plain YAML scalar means, and what is refused."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.rules.files.scalars import CONTROL, SAFE_FIRST, ScalarError, plain_key, plain_value, show


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("Null", None),
        ("true", True),
        ("TRUE", True),
        ("false", False),
        ("0", 0),
        ("-7", -7),
        ("+5", 5),
        ("9223372036854775807", (1 << 63) - 1),
        ("-9223372036854775808", -(1 << 63)),
        ("0.2", 0.2),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("-1.5E-3", -0.0015),
        ("1e308", 1e308),
        ("80 ms", "80 ms"),
        ("3 turns", "3 turns"),
        ("1.2.3", "1.2.3"),
        ("-", "-"),
        ("2024-01", "2024-01"),
        ("none", "none"),
        ("office", "office"),
        ("007-james", "007-james"),
        ("12:3a", "12:3a"),
        ("nothing", "nothing"),
        ("a_b", "a_b"),
        ("1_a", "1_a"),
    ],
)
def test_values(text, value):
    """The core schema of YAML 1.2."""
    found = plain_value(text)
    assert found == value
    assert type(found) is type(value)


_AMBIGUOUS = (
    "no No NO yes on off y N nan NaN inf Infinity = << 010 -010 08 00 007.5 01e5 0_1 1_000 1_000.5 0x1F -0x1f "
    "0o17 0b101 12:30 1:2 190:20:30.15 2024-01-02 2024-1-2 2024-01-02T10:00:00Z"
)


@pytest.mark.parametrize("text", [*_AMBIGUOUS.split(), "2024-01-02 10:00:00"])
def test_ambiguous(text):
    """What YAML versions read differently must be quoted."""
    with pytest.raises(ScalarError) as caught:
        plain_value(text)
    assert caught.value.code == "SK105"
    assert f'"{text}"' in caught.value.hint


@pytest.mark.parametrize(
    "text", ["9223372036854775808", "-9223372036854775809", "1" * 5_000, "1e309", "-1e400", ".inf", "-.Inf", ".nan"]
)
def test_not_finite(text):
    """Numbers outside int64 and float64 are refused."""
    with pytest.raises(ScalarError) as caught:
        plain_value(text)
    assert caught.value.code == "SK106"
    assert len(caught.value.message) < 100


def test_keys():
    """A key is text to every reader of YAML, `y` and `n` are names."""
    assert [plain_key(k) for k in ("when", "y", "n", "a b")] == ["when", "y", "n", "a b"]
    for text, code in (("<<", "SK104"), ("1", "SK105"), ("true", "SK105"), ("", "SK105"), ("on", "SK105")):
        with pytest.raises(ScalarError) as caught:
            plain_key(text)
        assert caught.value.code == code


def attempt(text):
    """Give the code of a refusal, or the value."""
    try:
        return "", plain_value(text)
    except ScalarError as error:
        return error.code, None


@given(st.text(max_size=40))
def test_any_text(text):
    """Any text is a value of one of six types, or refused."""
    code, value = attempt(text)
    assert code in {"", "SK105", "SK106"}
    assert not isinstance(value, str) or value == text
    assert not isinstance(value, float) or math.isfinite(value)


@given(st.sampled_from(sorted(SAFE_FIRST)), st.text(max_size=12))
def test_safe_first_letters(first, rest):
    """The reader's shortcut agrees with the rules: such a scalar is text."""
    assert plain_value(first + rest) == plain_key(first + rest) == first + rest


@given(st.text(max_size=200))
def test_show_hides_nothing(text):
    """Foreign text in a message is short, on one line and visible."""
    shown = show(text)
    assert shown.isprintable()
    assert not CONTROL.search(shown)
    assert len(shown) <= 2 + 40 * 10
