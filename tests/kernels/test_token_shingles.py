from __future__ import annotations

import math
import random

import numpy as np
import pytest

from stabilitykit.kernels.token_shingles import (
    BINS,
    MAP_BITS,
    MAP_WORDS,
    distinct_estimate,
    shared_ratio,
    shingle_hash,
)


def test_hash_tells_order_and_high_bits():
    """Order, sign and bits above the 32nd make another hash; the same three tokens make the same."""
    rows = [(1, 2, 3), (3, 2, 1), (1, 2, 4), (-1, 2, 3), (1 + 2**40, 2, 3), (0, 0, 0), (0, 0, 1), (2**30, 0, 0)]
    hashes = [shingle_hash(np.array(r, np.int64), 0) for r in rows]
    assert len(set(hashes)) == len(rows)
    assert all(0 < g < 2**31 for g in hashes)
    assert shingle_hash(np.array([9, 1, 2, 3], np.int64), 1) == hashes[0]


def test_hash_spreads():
    """Consecutive ids fall evenly into the map: chi-square within five deviations."""
    t = np.arange(20_000, dtype=np.int64)
    counts = np.bincount([shingle_hash(t, i) % 256 for i in range(len(t) - 2)], minlength=256)
    expected = counts.sum() / 256
    chi = float(((counts - expected) ** 2 / expected).sum())
    assert abs(chi - 255) < 5 * math.sqrt(2 * 255)


@pytest.mark.parametrize("distinct", [0, 1, 50, 250])
def test_distinct_estimate(distinct):
    """The estimate is near, and the map is clear afterwards."""
    rng = random.Random(distinct)
    words = np.zeros(MAP_WORDS, np.uint32)
    for _ in range(distinct):
        bit = rng.randrange(MAP_BITS)
        words[bit >> 5] |= np.uint32(1 << (bit & 31))
    assert distinct_estimate(words) == pytest.approx(distinct, abs=1e-9 if distinct < 2 else 12, rel=1e-3)
    assert not words.any()


def test_shared_ratio_counts_bins_in_use():
    """Equal bins over bins that either uses; two empty sketches share nothing."""
    a, b = np.zeros(BINS, np.uint32), np.zeros(BINS, np.uint32)
    assert shared_ratio(a, b) == 0.0
    a[:4] = 1, 2, 3, 4
    b[:4] = 1, 2, 9, 0
    assert shared_ratio(a, b) == 0.5
    assert shared_ratio(a, a) == 1.0
