from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels.token_cycle import cycle_spacing, longest_cycle
from tests.naive.degeneration import cycles

limits = st.tuples(st.integers(1, 12), st.integers(2, 4), st.integers(2, 24))


def found_by(tokens, period, copies, least):
    """Run the kernel with the spacing that belongs to its conditions."""
    found = np.zeros(2)
    spacing = cycle_spacing(period, copies, least)
    longest_cycle(np.array(tokens, np.int64), 0, len(tokens), period, copies, least, spacing, found)
    return tuple(found)


@given(st.lists(st.integers(0, 2), max_size=80), limits)
def test_is_the_exhaustive_search(tokens, limit):
    """Few symbols make many cycles of every kind; period and length are those of trying everything."""
    assert found_by(tokens, *limit) == cycles(tokens, *limit)


@given(st.integers(1, 40), st.integers(2, 5), st.integers(2, 60))
def test_spacing_is_the_shortest_run(period, copies, least):
    """A run shorter by one than the spacing never belongs to a cycle that counts."""
    spacing = cycle_spacing(period, copies, least)
    for p in range(1, period + 1):
        covered = spacing - 1 + p
        assert covered < least or covered < copies * p


def test_spacing_of_the_defaults():
    """For periods up to 128, three copies and 48 tokens one place in 32 is enough (period 16)."""
    assert cycle_spacing(128, 3, 48) == 32
