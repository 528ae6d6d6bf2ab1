from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels.slot_entropy import slot_entropy, slot_fill, slot_items
from tests.naive.queue_pressure import spread


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=64).filter(any))
def test_is_the_formula(counts):
    """Entropy, mean slot and items are those of probabilities written out."""
    array, slots = np.array(counts), len(counts)
    bits, _, fill, items = spread(counts, 1)  # type: ignore[misc]
    assert slot_items(array, slots) == items
    assert slot_entropy(array, slots, items) == pytest.approx(bits, abs=1e-9)
    assert slot_fill(array, slots, items) == (
        pytest.approx(fill, abs=1e-12) if slots > 1 else pytest.approx(math.nan, nan_ok=True)
    )


def test_what_is_no_count_is_unknown():
    """A negative number in a slot, or nothing at all, is no spread."""
    assert math.isnan(slot_items(np.array([3, -1, 5]), 3))
    assert math.isnan(slot_items(np.array([0, 0]), 2))
