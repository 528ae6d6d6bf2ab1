from __future__ import annotations

import math

import numpy as np
import pytest

from stabilitykit.kernels.simhash import cosine_estimate, differing_bits, hash32, is_direction, pool


def test_the_estimate_is_the_cosine():
    """cos(pi h / b) for every h of 256 and 1,024, without a library's cosine, exact at both ends and the middle."""
    for bits in (256, 1024):
        for h in range(bits + 1):
            assert cosine_estimate(h, bits) == pytest.approx(math.cos(math.pi * h / bits), abs=1e-14)
    assert [cosine_estimate(h, 64) for h in (0, 64)] == [1.0, -1.0]
    assert all(cosine_estimate(h, 256) > cosine_estimate(h + 1, 256) for h in range(256))


def test_the_limit_of_the_source_in_bits():
    """A cosine of .72 lies between 62 and 63 differing bits of 256 (formulas B5.1: at most 62)."""
    assert cosine_estimate(62, 256) > 0.72 > cosine_estimate(63, 256)


def test_the_pool_is_nearly_normal():
    """Mean 0, the deviation of eight bytes, hardly any excess; neighbours do not know each other."""
    numbers = np.array(pool(1024))
    deviation = math.sqrt(8 * (256**2 - 1) / 12)
    assert abs(numbers.mean()) < 4 * deviation / math.sqrt(len(numbers))
    assert numbers.std() == pytest.approx(deviation, rel=0.05)
    assert (numbers**4).mean() / numbers.var() ** 2 - 3 == pytest.approx(-0.15, abs=0.15)
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 4 / math.sqrt(len(numbers))


def test_hash_is_a_permutation_of_small_numbers():
    """No two of 100,000 words hash alike, as in any permutation of 32 bits."""
    assert len({hash32(i) for i in range(100_000)}) == 100_000


def test_what_has_no_direction():
    """Zeros, NaN and infinity have no angle to others."""
    rows = [[0.0, 0.0], [math.nan, 1.0], [math.inf, 1.0], [0.0, 1e-20]]
    assert [is_direction(np.array(r, np.float32), 0, 2) for r in rows] == [False, False, False, True]
    assert differing_bits(0xFFFF_FFFF, 0) == 32
