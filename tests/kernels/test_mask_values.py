from __future__ import annotations

import math

import numpy as np
import pytest

from stabilitykit.kernels.mask_values import HALF_INFINITE, HALF_LEAST, canonical_bool, canonical_half

LEGAL = (0x0000, HALF_LEAST, HALF_INFINITE)


@pytest.mark.capability("issue 3 §1: the nearest legal value for all 65,536 half-precision patterns")
def test_all_half_patterns_become_the_nearest_legal_one():
    """By value: NaN and minus infinity block; a finite number goes to the nearer of 0 and the least; above 0 is 0."""
    for pattern in range(65536):
        value = float(np.uint16(pattern).view(np.float16))
        if math.isnan(value) or value == -math.inf:
            wanted = HALF_INFINITE
        else:
            wanted = min((HALF_LEAST, 0), key=lambda p: abs(max(min(value, 1e9), -1e9) + 65504 * (p != 0)))
        assert canonical_half(pattern) == wanted, hex(pattern)


def test_legal_values_stay_and_nothing_is_repaired_twice():
    """The three legal patterns are their own nearest, and every result is one of them."""
    assert [canonical_half(p) for p in LEGAL] == list(LEGAL)
    assert {canonical_half(canonical_half(p)) for p in range(65536)} == set(LEGAL)
    assert [canonical_half(p) for p in (-1, 65536)] == [HALF_INFINITE] * 2


def test_the_sources_repair_loses_keys():
    """Clearing the lowest bit makes 0 of a boolean 1 and changes the least half; the nearest value does neither."""
    assert (1 & ~1, HALF_LEAST & ~1) == (0, 0xFBFE)
    assert (canonical_bool(1), canonical_half(HALF_LEAST)) == (1, HALF_LEAST)
    assert [canonical_bool(cell) for cell in (-(2**63), -1, 0, 1, 2, 2**63 - 1)] == [0, 0, 0, 1, 1, 1]


def test_flips_of_one_bit():
    """One flipped bit never hides a key that is seen; it shows a hidden one from bit 11 on (exponent and sign) only."""
    changed = {(p, bit) for p in LEGAL for bit in range(16) if (canonical_half(p ^ 1 << bit) == 0) != (p == 0)}
    assert {bit for p, bit in changed if p == 0} == set()
    assert {bit for p, bit in changed if p != 0} == {11, 12, 13, 14, 15}
