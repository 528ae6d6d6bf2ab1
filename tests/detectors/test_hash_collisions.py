from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.hash_collisions import HASH_COLLISIONS
from stabilitykit.detectors.trace import trace
from tests.detectors.agreement import check_twins
from tests.naive.hash_collisions import HashCollisionsTwin

sizes = st.one_of(st.integers(0, 80), st.integers(0, 10**6), st.sampled_from([2**20, 2**40, 2**53]))
drawn = st.tuples(sizes, sizes, st.integers(0, 1000), st.sampled_from([None, 0.0, 0.5, 1.0]))


def row(keys, buckets, per_mille, unknown=None):
    """Give one window whose occupied buckets are a share of the most that can be."""
    occupied = math.ceil(min(keys, buckets) * per_mille / 1000)
    given = {"keys": float(keys), "buckets": float(buckets), "occupied": float(occupied)}
    return {**given, "keys": None} if unknown == 0.0 else given


@given(st.lists(drawn, max_size=12))
def test_is_naive_twin(rows):
    """Mean, deviation and z agree with the closed form to a hundred digits, whatever the load."""
    check_twins(HASH_COLLISIONS, HashCollisionsTwin, [row(*w) for w in rows], tolerance=2e-5)


@pytest.mark.parametrize(
    ("buckets", "keys", "rate"),
    [(64, 8, 0.053), (64, 64, 0.365), (64, 128, 0.567), (64, 427, 0.850), (65536, 1000, 0.0076)],
)
def test_expected_rates_of_the_formulas(buckets, keys, rate):
    """The figures that B1.2 measured."""
    out = trace(HASH_COLLISIONS, [{"keys": keys, "buckets": buckets, "occupied": min(keys, buckets)}])[0]
    assert out["expected_rate"] == pytest.approx(rate, abs=6e-4)


@pytest.mark.parametrize(("keys", "buckets"), [(64, 64), (1000, 4096), (427, 64), (300, 5)])
def test_z_is_standard_under_simulation(keys, buckets):
    """With even hashing z has mean 0 and deviation 1 (5 buckets of 300 keys: all are always full)."""
    rng = np.random.default_rng(3)
    thrown = [len(np.unique(rng.integers(0, buckets, keys))) for _ in range(3000)]
    windows = [{"keys": keys, "buckets": buckets, "occupied": k} for k in thrown]
    z = np.array([t["z"] for t in trace(HASH_COLLISIONS, windows)])
    if buckets == 5:
        assert abs(z).max() < 1e-6
    else:
        assert z.mean() == pytest.approx(0.0, abs=0.08)
        assert z.std() == pytest.approx(1.0, abs=0.07)


def test_an_attack_is_over_and_high_load_is_not():
    """85 % of collisions are chance at 6.7 keys a bucket and an attack at a quarter."""
    turns = trace(
        HASH_COLLISIONS,
        [{"keys": 427, "buckets": 64, "occupied": 64}, {"keys": 427, "buckets": 1708, "occupied": 64}],
    )
    assert [t["is_over"] for t in turns] == [0.0, 1.0]
    assert turns[0]["rate"] == turns[1]["rate"] > 0.85


@pytest.mark.parametrize(
    ("keys", "buckets", "occupied"), [(7, 64, 7), (10, 0, 1), (10, 64, 11), (100, 64, 65), (10, 64, 0), (None, 64, 5)]
)
def test_too_little_or_impossible_is_unknown(keys, buckets, occupied):
    """Fewer than 8 keys, and counts that contradict each other, say nothing."""
    out = trace(HASH_COLLISIONS, [{"keys": keys, "buckets": buckets, "occupied": occupied}])[0]
    assert all(math.isnan(value) for value in out.values())


def test_one_collision_of_full_hashes_is_an_error():
    """Two of a million distinct keys with the same 64-bit hash stand far out (2^53 buckets, the largest count)."""
    out = trace(HASH_COLLISIONS, [{"keys": 1e6, "buckets": 2.0**53, "occupied": 1e6 - 1}])[0]
    assert out["z"] > 50
