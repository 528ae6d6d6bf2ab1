"""Units and exact scaling."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.rules.conditions.units import PLAIN, UNITS, exact, is_listed, quotient, scaled, to_float, unit_of


@pytest.mark.parametrize(
    ("number", "unit", "target", "value"),
    [
        ("7", "%", "ratio", 0.07),
        ("92", "%", "ratio", 0.92),
        ("0.0011", "s", "ms", 1.1),
        ("1.1", "ms", "us", 1100.0),
        ("80", "ms", "ms", 80.0),
        ("1.5", "KiB", "bytes", 1536.0),
        ("1", "GiB", "MiB", 1024.0),
        ("3", "", "count", 3.0),
        ("-5", "ms", "us", -5000.0),
        ("1e999", "s", "ms", math.inf),
        ("-1e9999", "s", "ms", -math.inf),
        ("1e-99999", "s", "ms", 0.0),
        ("1e99999", "s", "ms", math.inf),
        ("20", "tokens/s", "tokens/s", 20.0),
        ("5", "samples", "turns", 5.0),
    ],
)
def test_scaled(number, unit, target, value):
    """A literal is the float nearest to the exact number."""
    assert scaled(number, unit, target) == value


def test_zero_has_no_sign():
    """A negative zero is zero."""
    assert math.copysign(1.0, scaled("-0", "ms", "ms")) == 1.0


@pytest.mark.parametrize(("unit", "target"), [("ms", "tokens"), ("nats", "bits"), ("", "ms"), ("%", "ms"), ("?", "ms")])
def test_other_dimensions_are_refused(unit, target):
    """Numbers of two dimensions never become one another."""
    with pytest.raises(ValueError, match="cannot be counted in"):
        scaled("1", unit, target)


@given(st.decimals(min_value=-1000000, max_value=1000000, places=6), st.sampled_from(["us", "ms", "s"]))
def test_scaling_is_correctly_rounded(number, unit):
    """No neighbouring float is nearer to the exact value."""
    text = format(number, "f")
    value = scaled(text, unit, "ms")
    true = Fraction(text) * UNITS[unit].scale / UNITS["ms"].scale
    error = abs(Fraction(value) - true)
    assert all(error <= abs(Fraction(math.nextafter(value, way)) - true) for way in (-math.inf, math.inf))


def test_products_of_units():
    """Dimensions multiply and divide."""
    tokens, ms = UNITS["tokens"], UNITS["ms"]
    rate = quotient(tokens, ms, -1)
    assert rate.dim == UNITS["tokens/s"].dim
    assert rate.scale / UNITS["tokens/s"].scale == 1000
    assert rate.name == "1000 tokens/s"
    assert quotient(rate, ms, 1) == tokens
    assert quotient(ms, ms, -1) == PLAIN
    assert quotient(PLAIN, UNITS["s"], -1) == UNITS["/s"]
    assert not is_listed(quotient(ms, ms, 1))
    assert quotient(ms, ms, 1).name == "?"


def test_names_of_units():
    """Plain numbers have three names, turns four, everything else one."""
    assert unit_of("") is unit_of("ratio") is unit_of("count") is PLAIN
    assert unit_of("turn") is unit_of("sample") is unit_of("samples") is UNITS["turns"]
    assert unit_of("seconds") is None


def test_exact_is_bounded():
    """An absurd exponent is not computed."""
    assert exact("1e100000") is None
    assert exact("9" * 2_000) is None
    assert exact("2.5e1") == 25
    assert to_float(Fraction(10) ** 400) == math.inf
