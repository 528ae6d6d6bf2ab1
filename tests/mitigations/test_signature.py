from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels.simhash import pool, sign_word
from stabilitykit.mitigations.signature import BITS, signature, similarity


@given(st.integers(0, 10_000), st.integers(1, 40))
def test_the_bits_are_those_of_the_kernel(seed, width):
    """Word by word what the compiled pass keeps for the same vector."""
    vector = np.random.default_rng(seed).standard_normal(width)
    sums = np.zeros(32)
    words = [sign_word(vector, 0, width, pool(BITS), sums, k) for k in range(BITS // 32)]
    assert np.frombuffer(signature(vector), "<u4").tolist() == words


def test_the_pool_begins_again():
    """Also behind its last number."""
    vector = np.random.default_rng(1).standard_normal(4100)
    word = sign_word(vector, 0, 4100, pool(BITS), np.zeros(32), 0)
    assert np.frombuffer(signature(vector), "<u4")[0] == word


@pytest.mark.parametrize("vectors", [(), [0.0, 0.0], [math.nan, 1.0], [1e200, 1.0], [[1.0, 2.0], [0.0, 0.0]]])
def test_no_direction(vectors):
    """Then nothing is said."""
    assert signature(vectors) == b""


def test_similarity():
    """The least of the layers; unknown between snapshots of different shape."""
    draw = np.random.default_rng(2)
    a = draw.standard_normal((3, 64))
    b = a.copy()
    b[1] = 0.8 * a[1] + 0.6 * draw.standard_normal(64)
    exact = float(a[1] @ b[1] / np.linalg.norm(a[1]) / np.linalg.norm(b[1]))
    assert similarity(signature(a), signature(b)) == pytest.approx(exact, abs=0.2)
    assert math.isnan(similarity(signature(a), signature(a[:2])))
    assert math.isnan(similarity(b"", b""))
