from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from stabilitykit.kernels.class_entropy import given_entropy, linear_entropy


@given(st.integers(0, 2**32), st.integers(2, 40))
def test_given_entropy_is_scipys(seed, n):
    """Normalised, zeros among them."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n, 0.3)) * rng.uniform(0.995, 1.005)
    p[rng.integers(n)] *= 0.999
    entropy, best = given_entropy(p, n)
    assert entropy == pytest.approx(stats.entropy(p), abs=1e-12)
    assert best == np.argmax(p)


@pytest.mark.parametrize("p", [[0.5, 0.4], [1.5, -0.5], [math.nan, 1.0], [math.inf, 0.0], [0.0, 0.0]])
def test_what_is_no_distribution_is_unknown(p):
    """A wrong sum, a negative or non-finite element."""
    assert math.isnan(given_entropy(np.array(p), len(p))[0])


@given(st.integers(0, 2**32), st.floats(0.01, 500))
def test_linear_entropy_survives_great_logits(seed, scale):
    """The one pass over the classes is scipy's softmax and entropy, also where exp would overflow."""
    rng = np.random.default_rng(seed)
    rows, bias, u = rng.normal(size=(7, 5)), rng.normal(size=7), rng.normal(size=5).astype(np.float32)
    c = np.concatenate([rows.ravel(), bias])
    entropy, best = linear_entropy(c, 0, 35, u, scale, 5, 7)
    logits = scale * (rows @ u.astype(float)) + bias
    assert entropy == pytest.approx(stats.entropy(special.softmax(logits)), abs=1e-9)
    assert best == np.argmax(logits)


def test_linear_entropy_of_what_overflows_is_unknown():
    """An infinite logit has no softmax."""
    assert math.isnan(linear_entropy(np.full(4, 1e300), 0, 2, np.full(1, 3e38, np.float32), 1.0, 1, 2)[0])
