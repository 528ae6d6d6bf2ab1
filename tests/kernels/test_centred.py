from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels.centred import centred_products, keep_centred, weighted_products


def blocks(seed, dim):
    """Give a vector, a centre with three rows behind it, and three kept vectors."""
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=dim).astype(np.float32),
        rng.normal(size=2 + 4 * dim),
        rng.normal(size=3 * dim).astype(np.float32),
    )


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_products_are_numpys(seed, dim):
    """Of the centred vector with itself and what is kept, weighed and plain."""
    u, c, v = blocks(seed, dim)
    rows = c[2:].reshape(4, dim)
    z, kept = u * 0.5 - rows[0], v.astype(float).reshape(3, dim)
    plain = [z @ z, *(kept @ z)]
    assert centred_products(u, 0.5, c, 2, v, 0, dim, 2 * dim, dim) == pytest.approx(plain, rel=1e-6, abs=1e-6)
    weighed = [rows[1] @ z, rows[2] @ z, rows[3] @ (z * kept[0])]
    found = weighted_products(u, 0.5, c, 2, v, 0, dim, 2 * dim, dim)
    assert found == pytest.approx([*plain, *weighed], rel=1e-6, abs=1e-6)


@given(st.integers(0, 2**32), st.integers(1, 40), st.sampled_from([0.5, 0.7, 1.0]))
def test_keeping_moves_the_mean_and_nothing_else(seed, dim, share):
    """The direction goes to its place, a share of it into the mean; the other vector stays."""
    u, c, v = blocks(seed, dim)
    before = v.astype(float).reshape(3, dim)
    z = (u - c[2 : 2 + dim]) / 2.0
    square = keep_centred(u, 1.0, c, 2, 2.0, v, dim, 2 * dim, share, dim)
    mean = before[2] + share * (z - before[2])
    assert v.reshape(3, dim) == pytest.approx(np.stack([before[0], z, mean]), rel=1e-6, abs=1e-6)
    assert square == pytest.approx(mean @ mean, rel=1e-6, abs=1e-6)
