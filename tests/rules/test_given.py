from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.rules.given import Given, GivenError, read_given, take_as
from stabilitykit.signals import SettingSpec

NUMBER = SettingSpec("x", 0.0, "", kind="number", unit="ms", lo=0.0, hi=1000.0)
COUNT = SettingSpec("x", 0, "", kind="count", lo=1, hi=10)
RATIO = SettingSpec("x", 0.0, "", kind="number", unit="ratio", lo=0.0, hi=1.0)
TOKENS = SettingSpec("x", 0, "", kind="count", unit="tokens")
FLAG = SettingSpec("x", False, "", kind="bool")
ENUM = SettingSpec("x", "plain", "", kind="enum", values=("plain", "corrected"))


@pytest.mark.parametrize(
    ("raw", "want", "value"),
    [
        ("80 ms", NUMBER, 80.0),
        ("80ms", NUMBER, 80.0),
        ("0.5 s", NUMBER, 500.0),
        ("7 %", RATIO, 0.07),
        (0.2, RATIO, 0.2),
        (1, RATIO, 1.0),
        (5, COUNT, 5),
        (5.0, COUNT, 5),
        ("5", COUNT, 5),
        (256, TOKENS, 256),
        ("256 tokens", TOKENS, 256),
        (True, FLAG, True),
        ("corrected", ENUM, "corrected"),
    ],
)
def test_a_value_is_taken_in_the_unit_wanted(raw, want, value):
    """Literals scale exactly; counts and ratios take bare numbers."""
    taken = take_as(read_given(raw), want)
    assert taken == value
    assert type(taken) is type(value)


@pytest.mark.parametrize(
    ("raw", "want", "reason"),
    [
        (80, NUMBER, "SK411"),
        ("80 parsecs", NUMBER, "SK411"),
        ("80 tokens", NUMBER, "SK410"),
        ("3 turns", COUNT, "SK410"),
        ("2 s", NUMBER, "range"),
        ("-1 ms", NUMBER, "range"),
        (0, COUNT, "range"),
        (2.5, COUNT, "type"),
        ("fast", COUNT, "type"),
        (1, FLAG, "type"),
        ("true", FLAG, "type"),
        ("plian", ENUM, "SK416"),
        (3, ENUM, "type"),
        (True, COUNT, "type"),
        ([1], COUNT, "type"),
        ("", COUNT, "type"),
        ("1e999 ms", NUMBER, "range"),
        (math.inf, COUNT, "range"),
    ],
)
def test_a_value_that_does_not_fit_says_why(raw, want, reason):
    """Units and words have codes of their own; types and ranges get theirs from who asks."""
    with pytest.raises(GivenError) as error:
        take_as(read_given(raw), want)
    assert error.value.reason == reason


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63 - 1))
def test_a_bare_number_keeps_its_value(number):
    """What YAML gave is what arrives, to the last bit."""
    free = SettingSpec("x", 0.0, "", kind="number")
    assert take_as(read_given(number), free) == float(number)


@given(st.integers(0, 10**6))
def test_whole_numbers_of_a_coarser_unit_are_exact(number):
    """Seconds become milliseconds without rounding."""
    wide = SettingSpec("x", 0.0, "", kind="number", unit="ms")
    assert take_as(read_given(f"{number} s"), wide) == number * 1000


def test_a_literal_prints_as_it_was_written():
    """Messages show what stands in the file."""
    assert [str(read_given(raw)) for raw in ("80  ms", 0.2, True, "light", "1 turn")] == [
        "80 ms",
        "0.2",
        "true",
        "light",
        "1 turns",
    ]
    assert read_given("light") == Given("word", "light")


def test_a_range_is_described_as_far_as_it_goes():
    """Open ends are not shown as infinities."""
    said = []
    for lo, hi, raw in ((0, 1, 2), (0, math.inf, -1), (-math.inf, 0, 1), (-math.inf, math.inf, "1e999")):
        with pytest.raises(GivenError) as error:
            take_as(read_given(raw), SettingSpec("x", 0, "", kind="number", lo=lo, hi=hi))
        said.append(error.value.message)
    assert said == ["2 is outside 0 to 1", "-1 is below 0", "1 is above 0", "1e999 is not finite"]
