"""Positions of tokens and what finite precision makes of them in rotary embeddings.

A token at position p turns its i-th pair by the angle p * theta_i, theta_i = base**(-2i/d).
"""

from __future__ import annotations

import math
import struct

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.pointers import Block

__all__ = ["PRECISIONS", "expected_position", "greatest_deviation", "mismatches", "phase_error", "phase_slope"]

PRECISIONS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}
"""Significant bits."""

REROTATION = {"f64": 5e-17, "f32": 2.7e-8, "f16": 2.3e-4, "bf16": 1.8e-3}
"""Phase error (radians) of rotating a stored key once, measured (formulas B4.1); f16 has an eighth of bf16's."""

_GROWTH = 0.76  # measured: 20 rotations by one distance, each of the last result, err 9.8 times as much


def phase_slope(precision: str, dim: int, base: float) -> float:
    """Give the phase error (radians) per position of angles computed in one precision, as a bound.

    theta is rounded once, the product with the position once more. theta_0 = 1 and whole positions
    are exact, so the second frequency, the fastest inexact one, decides.
    """
    if dim < 4:
        return 0.0
    bits = PRECISIONS[precision]
    thetas = [base ** (-2.0 * i / dim) for i in range(1, dim // 2)]
    worst = max((abs(_rounded(t, bits) - t) for t in thetas), default=0.0) if bits < 53 else 2.0**-54
    return worst + thetas[0] * 2.0**-bits


def _rounded(value: float, bits: int) -> float:
    """Round to so many significant bits, ties to even."""
    if bits == 24:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(math.ldexp(mantissa, bits)), exponent - bits)


@kernel
def phase_error(position: float, rotations: float, slope: float, exact: float, once: float) -> float:
    """Estimate the phase error (radians, at most pi) at a position.

    Parameters
    ----------
    position
        Largest position in use.
    rotations
        How often stored keys were rotated again, each time from the last result.
    slope
        ``phase_slope``.
    exact
        Whole numbers above it, 2 to the number of significant bits, are rounded too.
    once
        Error of one rotation of a stored key.
    """
    error = position * slope
    if position > exact:
        error += position / exact
    if rotations > 0.0:
        error += once * math.exp(_GROWTH * math.log(rotations))
    return min(error, math.pi)


@kernel
def mismatches(positions: Block, lo: int, hi: int, first: int) -> int:
    """Count the elements lo..hi that are not ``first``, ``first + 1`` and so on."""
    bad = 0
    for j in range(lo, hi):
        bad += 1 if positions[j] != first + (j - lo) else 0
    return bad


@kernel
def expected_position(k: int, sinks: int, base: int) -> int:
    """Give the position of the k-th token kept: sinks stay in front, the others are moved by base."""
    return k if k < sinks else k + base


@kernel
def greatest_deviation(positions: Block, count: int, start: int, sinks: int, base: int) -> tuple[float, float]:
    """Compare a row with the positions of the tokens ``start`` on.

    Returns
    -------
    deviation, largest
        Actual minus expected where they differ most (the last such place), and the largest position.
    """
    front = min(max(sinks - start, 0), count)
    if mismatches(positions, 0, front, start) + mismatches(positions, front, count, start + front + base) == 0:
        return 0.0, float(expected_position(start + count - 1, sinks, base))
    worst, largest = 0.0, float(positions[0])
    for j in range(count):
        actual = float(positions[j])
        deviation = actual - float(expected_position(start + j, sinks, base))
        if abs(deviation) >= abs(worst):
            worst = deviation
        largest = max(largest, actual)
    return worst, largest
