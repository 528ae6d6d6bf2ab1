from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels.rope import (
    PRECISIONS,
    REROTATION,
    expected_position,
    greatest_deviation,
    mismatches,
    phase_error,
    phase_slope,
)


def true_error(dim, base, top):
    """Give the greatest error of float32 angles up to a position, in extended precision."""
    exact = np.longdouble(base) ** (-2 * np.arange(dim // 2) / np.longdouble(dim))
    narrow = exact.astype(np.float64).astype(np.float32)
    positions = np.unique(np.concatenate([np.arange(max(top - 300, 0), top + 1), np.linspace(0, top, 300).astype(int)]))
    angles = positions.astype(np.float32)[:, None] * narrow
    return float(np.abs(angles.astype(np.longdouble) - positions[:, None].astype(np.longdouble) * exact).max())


@pytest.mark.parametrize("top", [255, 4095, 32767, 131071, 163839, 1048575])
@pytest.mark.parametrize("base", [1e4, 5e5])
@pytest.mark.parametrize("dim", [64, 128])
def test_the_estimate_bounds_float32_angles(dim, base, top):
    """Not below the true maximum in extended precision, and at most 1.7 times it."""
    estimate = phase_error(float(top), 0.0, phase_slope("f32", dim, base), 2.0**24, REROTATION["f32"])
    assert 1.0 <= estimate / true_error(dim, base, top) <= 1.7


def rounded(values, bits):
    """Round to so many significant bits, ties to even."""
    if bits == 24:
        return values.astype(np.float32).astype(np.float64)
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)


@pytest.mark.capability("issue 3 §1: phase error against extended precision in half, bfloat16 and double")
@pytest.mark.parametrize(("precision", "top"), [("f16", 255), ("f16", 1023), ("bf16", 63), ("bf16", 255)])
@pytest.mark.parametrize("dim", [64, 128])
def test_the_estimate_bounds_narrow_angles(precision, top, dim):
    """While positions themselves are exact: not below the true maximum, and at most 1.7 times it."""
    bits = PRECISIONS[precision]
    exact = np.longdouble(1e4) ** (-2 * np.arange(dim // 2) / np.longdouble(dim))
    positions = np.arange(top + 1)
    angles = rounded(positions[:, None] * rounded(exact.astype(np.float64), bits), bits)
    true = float(np.abs(angles - positions[:, None].astype(np.longdouble) * exact).max())
    estimate = phase_error(float(top), 0.0, phase_slope(precision, dim, 1e4), 2.0**bits, 0.0)
    assert 1.0 <= estimate / true <= 1.7


@pytest.mark.parametrize("top", [4095, 163839])
def test_the_estimate_bounds_double_angles(top):
    """Double precision against extended: at most four times the true maximum, which is near its rounding."""
    exact = np.longdouble(1e4) ** (-2 * np.arange(64) / np.longdouble(128))
    positions = np.arange(max(top - 3000, 0), top + 1)
    angles = positions[:, None] * exact.astype(np.float64)
    true = float(np.abs(angles.astype(np.longdouble) - positions[:, None].astype(np.longdouble) * exact).max())
    assert 1.0 <= phase_error(float(top), 0.0, phase_slope("f64", 128, 1e4), 2.0**53, 0.0) / true <= 4.0


@pytest.mark.parametrize("precision", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("rotations", [1, 5, 20])
def test_the_estimate_bounds_repeated_rotation(precision, rotations):
    """A stored key, rotated again and again from the last result: the relative error is below the estimate."""
    bits, rng = PRECISIONS[precision], np.random.default_rng(1)
    turn = np.exp(-1j * 256 * 1e4 ** (-2 * np.arange(64) / 128))
    key = rounded(rng.standard_normal((500, 64)), bits) + 1j * rounded(rng.standard_normal((500, 64)), bits)
    stored = key
    for _ in range(rotations):
        stored = stored * turn
        stored = rounded(stored.real, bits) + 1j * rounded(stored.imag, bits)
    true = float(np.linalg.norm(stored - key * turn**rotations) / np.linalg.norm(key))
    assert 1.0 <= phase_error(0.0, float(rotations), 0.0, 2.0**bits, REROTATION[precision]) / true <= 3.0


def test_bfloat16_positions_break_above_256():
    """257 is 256 in bfloat16: the error jumps by a whole position's rounding."""
    slope, exact = phase_slope("bf16", 128, 1e4), 2.0 ** PRECISIONS["bf16"]
    below, above = (phase_error(p, 0.0, slope, exact, 0.0) for p in (256.0, 257.0))
    assert above - below >= 1.0
    assert phase_error(1e6, 0.0, slope, exact, 0.0) == math.pi


def test_repeated_rotation_accumulates():
    """20 rotations of the last result: 9.8 times the error of one."""
    one, twenty = (phase_error(0.0, n, 0.0, 2.0**24, REROTATION["bf16"]) for n in (1.0, 20.0))
    assert one == pytest.approx(1.8e-3)
    assert twenty / one == pytest.approx(9.8, abs=0.1)


def test_one_frequency_is_exact():
    """With two rotary dimensions theta is 1 and whole positions lose nothing."""
    assert phase_slope("f32", 2, 1e4) == 0.0
    assert 0 < phase_slope("f64", 64, 1e4) < 2e-16


@given(
    st.integers(0, 30), st.integers(0, 8), st.integers(0, 50), st.lists(st.integers(-3, 90), min_size=1, max_size=20)
)
def test_deviation_of_a_row(start, sinks, base, row):
    """The greatest difference from the written-out row, the last one of ties; and the largest position."""
    wanted = [expected_position(start + j, sinks, base) for j in range(len(row))]
    apart = [a - b for a, b in zip(row, wanted, strict=True)]
    found = greatest_deviation(np.array(row), len(row), start, sinks, base)
    assert found == (max(reversed(apart), key=abs), max(row))
    assert greatest_deviation(np.array(wanted), len(row), start, sinks, base) == (0.0, max(wanted))


def test_sinks_stay_in_front():
    """Of 4 sinks the last keeps its place; the token behind them is moved."""
    assert [expected_position(k, 4, 10) for k in (0, 3, 4, 5)] == [0, 3, 14, 15]
    assert greatest_deviation(np.array([0, 1, 2, 3, 14, 25]), 6, 0, 4, 10) == (10.0, 25.0)


def test_mismatches_count_a_part_of_a_row():
    """Only the elements asked for are compared."""
    assert mismatches(np.array([9, 4, 5, 7, 9]), 1, 4, 4) == 1
