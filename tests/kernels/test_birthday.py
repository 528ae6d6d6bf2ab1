from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels.birthday import collision_variance, collision_z, expected_collisions
from tests.naive.hash_collisions import moments

sizes = st.integers(1, 90) | st.integers(1, 10**7) | st.sampled_from([2.0**20, 2.0**40, 2.0**53])


@given(sizes.filter(lambda n: n >= 8), sizes)
def test_moments_are_the_closed_form(keys, buckets):
    """Mean and variance agree with a hundred digits, to what matters beside the least deviation."""
    mean, variance = moments(keys, buckets)
    least = 1e-9 * keys
    assert expected_collisions(float(keys), float(buckets)) == pytest.approx(mean, rel=2e-6, abs=1e-3 * least)
    deviation = math.sqrt(max(collision_variance(float(keys), float(buckets)), 0.0))
    assert deviation == pytest.approx(math.sqrt(max(variance, 0.0)), rel=2e-5, abs=1e-2 * least)


def test_two_keys():
    """Two keys in m buckets meet with chance 1/m: the closed form by hand."""
    assert expected_collisions(2.0, 5.0) == pytest.approx(0.2)
    assert collision_variance(2.0, 5.0) == pytest.approx(0.2 * 0.8)
    assert collision_z(2.0, 5.0, 1.0) == pytest.approx(0.8 / 0.4)
