from __future__ import annotations

import numpy as np
import pytest

from stabilitykit.integrations.transformers.masks import MaskRows, cells_of
from stabilitykit.mitigations.masks import mask_rows, unpack


def causal(cached, rows, window=0):
    """Give the mask that lengths ask for."""
    return unpack(mask_rows(cached=cached, rows=rows, window=window), cached + rows).astype(np.int8)


def passes(noted, sizes, cached=0, window=0):
    """Note the sound masks of passes of so many tokens each."""
    for size in sizes:
        noted.add(cached, size, window, [causal(cached, size, window)])
        cached += size


def square(signals):
    """Give the mask of a turn as a matrix."""
    return signals["attention_mask"].reshape(signals["mask_rows"], -1)


@pytest.mark.parametrize("window", [0, 3])
def test_passes_are_one_mask(window):
    """A prompt and three tokens behind two cached ones: the mask of one pass over all six."""
    noted = MaskRows(1000)
    passes(noted, (3, 1, 1, 1), cached=2, window=window)
    told = noted.signals()
    assert (told["mask_rows"], told["mask_cached_tokens"]) == (6, 2)
    np.testing.assert_array_equal(square(told), causal(2, 6, window))


def test_keys_that_left_a_window_are_filled_up():
    """A cache that holds the last keys only brings short rows; the mask is that of a cache that holds all."""
    noted = MaskRows(1000)
    for cached in range(6):
        held = min(cached, 2) + 1
        noted.add(cached, 1, 3, [causal(cached, 1, 3)[:, -held:]])
    np.testing.assert_array_equal(square(noted.signals()), causal(0, 6, 3))


def test_free_places_of_a_fixed_cache_are_left_out():
    """Columns of tokens that are still to come are hidden, and no part of the mask; a visible one is."""
    noted = MaskRows(1000)
    noted.add(0, 3, 0, [np.pad(causal(0, 3), ((0, 0), (0, 5)))])
    np.testing.assert_array_equal(square(noted.signals()), causal(0, 3))
    noted.add(3, 1, 0, [np.ones((1, 8), np.int8)])
    assert len(noted.signals()["attention_mask"]) == 8


def test_a_length_that_the_cache_does_not_explain_is_told_alone():
    """One key is missing: the mask is given as it came, with the tokens there were."""
    noted = MaskRows(1000)
    passes(noted, (4,))
    noted.add(4, 1, 0, [np.ones((1, 4), np.int8)])
    assert noted.signals() | {"attention_mask": 0} == {"attention_mask": 0, "mask_rows": 1, "mask_cached_tokens": 4}


def test_the_wrong_one_of_two_masks_is_kept():
    """One layer was given another mask than the others, before them or after them."""
    right, wrong = causal(0, 4), causal(0, 4)
    wrong[3, 1] = 0
    for given in ([right, wrong], [wrong, right]):
        noted = MaskRows(1000)
        noted.add(0, 4, 0, given)
        np.testing.assert_array_equal(square(noted.signals()), wrong)


def test_memory_is_bounded():
    """The last rows stay; what is said of the keys before them still fits."""
    noted = MaskRows(60)
    passes(noted, (8, 1, 1))
    told = noted.signals()
    assert len(told["attention_mask"]) == 60
    np.testing.assert_array_equal(square(told), causal(told["mask_cached_tokens"], told["mask_rows"]))
    assert MaskRows(60).signals() == {}


@pytest.mark.oracle
@pytest.mark.parametrize("form", ["float32", "float16", "bfloat16", "float64"])
def test_values_of_additive_masks(form):
    """What a cell says, in each number format: seen, hidden in four ways, and odd."""
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, form)
    least = torch.finfo(dtype).min
    values = torch.tensor([[0.0, -0.0, least, -float("inf"), -1.0, 1.0, float("nan"), 0.75 * least]], dtype=dtype)
    assert cells_of(values).tolist() == [[1, 1, 0, 0, 2, 2, -1, -1]]


@pytest.mark.oracle
def test_booleans_and_whole_numbers():
    """They are what they are; what is neither 0 nor 1 is odd."""
    torch = pytest.importorskip("torch")
    assert cells_of(torch.tensor([[True, False]])).tolist() == [[1, 0]]
    assert cells_of(torch.tensor([[1, 0, 300, -300]])).tolist() == [[1, 0, 2, -1]]


@pytest.mark.oracle
def test_every_flip_of_a_half():
    """Any one bit flipped in a legal half is seen, but for the sign of 0 and what makes another legal value."""
    torch = pytest.importorskip("torch")
    legal = {0x0000: 1, 0x8000: 1, 0xFBFF: 0, 0xFC00: 0}
    for pattern in (0x0000, 0xFBFF, 0xFC00):
        for bit in range(16):
            flipped = pattern ^ 1 << bit
            value = torch.tensor([[flipped]], dtype=torch.int32).to(torch.int16).view(torch.float16)
            (cell,) = cells_of(value)[0]
            assert cell == legal[flipped] if flipped in legal else cell in (-1, 2)
