from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels.block_table import PROBES, block_tag, touch_block


def test_ids_below_two_to_the_32_keep_apart():
    """The fold is one to one there, so two small ids never share a tag (0 and the id that folds to 1 aside)."""
    tags = {block_tag(i) for i in range(100_000)}
    assert len(tags) >= 99_999
    assert all(0 < tag < 2**32 for tag in tags)


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_id_has_a_tag(block):
    """Any int64 folds to 1 .. 2**32 - 1."""
    assert 0 < block_tag(block) < 2**32


def test_the_longest_idle_makes_room():
    """A full table of one neighbourhood loses the block that was not used for longest."""
    h, w = np.zeros(2 * PROBES, np.uint32), np.zeros(PROBES, np.uint16)
    slots = [touch_block(h, w, PROBES, block, now) for now, block in enumerate(range(PROBES), 1)]
    assert sorted(slots) == list(range(PROBES))
    assert touch_block(h, w, PROBES, 0, 9) == slots[0]
    assert touch_block(h, w, PROBES, 77, 10) == slots[1]
    assert w[slots[0]] == 2
    assert w[slots[1]] == 1


def test_one_access_a_time_and_no_overflow():
    """A block named twice on a turn was used once; the count stops at 65,535."""
    h, w = np.zeros(2, np.uint32), np.zeros(1, np.uint16)
    for _ in range(2):
        touch_block(h, w, 1, 5, 1)
    assert w[0] == 1
    w[0] = 65535
    touch_block(h, w, 1, 5, 2)
    assert w[0] == 65535
