from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels.mask_bits import allowed_row, allowed_word, low_bits, lowest_bit, packed_word, valid_word
from tests.naive.attention_mask import wanted_keys


@given(st.integers(0, 300), st.integers(0, 80), st.integers(0, 200), st.integers(0, 5))
def test_words_and_rows_are_the_definition(position, window, sinks, word):
    """Both ways to write a row give exactly the keys of the definition."""
    wanted = wanted_keys(position, window, sinks)
    row = allowed_row(position, window, sinks)
    assert {j for j in range(row.bit_length()) if row >> j & 1} == wanted
    assert int(allowed_word(64 * word, position, window, sinks)) == row >> 64 * word & 2**64 - 1


@pytest.mark.parametrize("k", [-70, 0, 1, 63, 64, 65])
def test_low_bits(k):
    """None below one, all from 64 on."""
    assert int(low_bits(k)) == (1 << min(max(k, 0), 64)) - 1


@given(st.lists(st.integers(-1, 2), min_size=1, max_size=64))
def test_packing(cells):
    """A cell above 0 is seen, and only 0 and 1 are legal."""
    seen, odd = packed_word(np.array(cells), 0, len(cells), False)
    assert int(seen) == sum(1 << j for j, cell in enumerate(cells) if cell > 0)
    assert int(odd) == sum(1 << j for j, cell in enumerate(cells) if cell not in (0, 1))
    assert int(valid_word(np.array(cells), 1, 0, len(cells))) == sum(1 << j for j, c in enumerate(cells) if c)
    assert lowest_bit(seen) == next((j for j, cell in enumerate(cells) if cell > 0), 64)
