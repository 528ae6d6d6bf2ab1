from __future__ import annotations

from functools import reduce
from itertools import permutations, product
from operator import xor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels.path_signature import path_signature

PATHS = st.lists(st.integers(-(2**63), 2**64 - 1), max_size=12)


@pytest.mark.capability("issue 3 §1: a path's signature sees loops run twice and order, where XOR sees neither")
def test_loops_and_order_count():
    """A body run 0 to 9 times gives ten signatures, five steps in any order 120; XOR gives two and one."""
    body = [3, 5, 8]
    assert len({path_signature([1, *body * times, 2]) for times in range(10)}) == 10
    assert len({reduce(xor, [1, *body * times, 2]) for times in range(10)}) == 2
    orders = list(permutations([1, 2, 3, 4, 5]))
    assert len({path_signature(order) for order in orders}) == 120
    assert len({reduce(xor, order) for order in orders}) == 1


def test_short_paths_never_collide():
    """All paths of up to six of four steps, 5,461 of them, are told apart."""
    paths = [path for size in range(7) for path in product([0, 1, 2, 2**64 - 1], repeat=size)]
    assert len({path_signature(path) for path in paths}) == len(paths) == 5461


@given(PATHS, PATHS)
def test_it_rolls(first, rest):
    """Signing at once or going on from a signature is the same, and the result has 64 bits."""
    whole = path_signature(first + rest)
    assert whole == path_signature(rest, path_signature(first))
    assert 0 <= whole < 2**64
