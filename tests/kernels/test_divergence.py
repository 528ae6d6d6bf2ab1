from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr

from stabilitykit.kernels import kernel
from stabilitykit.kernels.compile import compile_function
from stabilitykit.kernels.divergence import (
    FORWARD,
    JS,
    REVERSE,
    divergence_term,
    full_mixture,
    full_moments,
    keep_top,
    top_mass,
)

PROBABILITY = st.floats(0, 1).filter(lambda p: p == 0 or p > 1e-300)


def log(p):
    """Give the logarithm, the least float for 0 as kernels never see infinity."""
    return math.log(p) if p > 0 else -9000.0


@given(PROBABILITY, PROBABILITY)
def test_a_term_is_scipys(q, p):
    """One cell's share is rel_entr wherever that is finite."""
    m = (q + p) / 2
    expected = {FORWARD: rel_entr(q, p), REVERSE: rel_entr(p, q), JS: (rel_entr(q, m) + rel_entr(p, m)) / 2}
    for direction, value in expected.items():
        if math.isfinite(value):
            assert divergence_term(q, log(q), p, log(p), direction) == pytest.approx(float(value), abs=1e-12)


def test_probabilities_that_are_none():
    """A sum above 1.001, a NaN, an infinity, a token that is no uint32 or nothing at all: NaN."""
    tokens, bad_tokens = np.array([1, 2]), np.array([1, -1])
    good = np.array([-0.7, -0.7], np.float32)
    assert top_mass(tokens, good, 2) == pytest.approx(2 * math.exp(-0.7), rel=1e-6)
    assert math.isnan(top_mass(bad_tokens, good, 2))
    assert math.isnan(top_mass(np.array([1, 2**32]), good, 2))
    for value in (math.nan, math.inf, 0.002, -0.6):
        assert math.isnan(top_mass(tokens, np.array([-0.6, value], np.float32), 2))
    for nothing in (-9999.0, -math.inf):
        assert math.isnan(top_mass(tokens, np.full(2, nothing, np.float32), 2))


def test_a_kept_list_has_every_token_once():
    """Doubles are summed in place, entries that were not computed are left out."""
    f, h = np.zeros(6), np.zeros(6, np.uint32)
    logprobs = np.log(np.array([0.1, 0.2, 0.3], np.float32))
    count = keep_top(np.array([7, 9, 7, 8]), np.append(logprobs, np.float32(-9999)), 4, f, h, 1)
    assert count == 2
    assert h.tolist() == [0, 7, 9, 0, 0, 0]
    assert np.exp(f[1:3]) == pytest.approx([0.4, 0.2], rel=1e-6)


def test_a_double_that_underflows_is_still_a_number():
    """Two entries of probability 0 in float64 are summed by their logarithms."""
    f, h = np.zeros(2), np.zeros(2, np.uint32)
    assert keep_top(np.array([7, 7]), np.array([-8000, -8001], np.float32), 2, f, h, 0) == 1
    assert f[0] == pytest.approx(-8000 + math.log1p(math.exp(-1)))


@kernel
def call_moments(a, b, out):
    """Write what full_moments gives."""
    out[0], out[1], out[2], out[3] = full_moments(a, b, 5000)
    out[4] = full_mixture(a, b, out[0], 1.0, 5000)
    return 0


@pytest.mark.parametrize("run", [call_moments, compile_function(call_moments)], ids=["plain", "compiled"])
def test_moments_over_several_blocks(run):
    """More than two blocks and a rest: every sum is numpy's in float64, zeros are counted on the other side."""
    rng = np.random.default_rng(5)
    logits = rng.normal(0, 3, (2, 5000))
    logits[1, [3, 4999]] = -np.inf
    a, b = (logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))).astype(np.float32)
    out = np.zeros(5)
    run(a, b, out)
    la, lb = a.astype(float), np.where(np.isinf(b), math.log(1e-10), b.astype(float))
    p = np.exp(la)
    m = (p + np.exp(b.astype(float))) / 2
    assert out == pytest.approx([p.sum(), p @ la, p @ (la - lb), 2.0, -(m @ np.log(m))], rel=5e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, 2.0])
def test_what_is_no_logprobability_shows_in_the_mass(value):
    """NaN gives NaN; anything above 0 makes the mass too great: either is no distribution."""
    a = np.log(np.full(8, 0.125, np.float32))
    a[3] = value
    mass, *_ = full_moments(a, a, 8)
    assert not abs(mass - 1.0) <= 1e-3
