from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.attention_mask import ATTENTION_MASK
from stabilitykit.detectors.trace import trace
from stabilitykit.errors import UsageError
from stabilitykit.kernels.mask_bits import KINDS
from stabilitykit.mitigations.masks import (
    first_violation,
    mask_rows,
    next_row,
    pack,
    repair_mask,
    row_parity,
    unpack,
)
from tests.naive.attention_mask import wanted_keys


@pytest.mark.capability("issue 5 §4: masks for decoding against brute force up to 16 keys, windows and sinks")
@pytest.mark.parametrize("window", [0, 1, 3, 16])
@pytest.mark.parametrize("sinks", [0, 1, 4])
def test_rows_up_to_16_keys(window, sinks):
    """Every shape: the rows are the definition, and one row follows from the one before."""
    for keys in range(1, 17):
        for rows in range(1, keys + 1):
            made = mask_rows(cached=keys - rows, rows=rows, window=window, sinks=sinks)
            for r, row in enumerate(made):
                position = keys - rows + r
                assert {j for j in range(keys) if row >> j & 1} == wanted_keys(position, window, sinks)
                assert r == 0 or row == next_row(made[r - 1], position, window=window, sinks=sinks)
            assert pack(unpack(made, keys)) == made
            assert first_violation(made, cached=keys - rows, window=window, sinks=sinks) is None


@pytest.mark.capability("issue 5 §4: the check names the first violating cell and its kind")
@given(
    st.integers(0, 12),
    st.integers(1, 4),
    st.integers(0, 4),
    st.integers(0, 2),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 15)), max_size=3),
    st.one_of(st.none(), st.integers(0, 2**16 - 1)),
)
def test_the_check_is_the_detectors(cached, rows, window, sinks, flips, valid):
    """Packed rows with any flips: kind and place are those of the detector, which has its own oracle."""
    keys = cached + rows
    made = list(mask_rows(cached=cached, rows=rows, window=window, sinks=sinks))
    for r, j in flips:
        made[r % rows] ^= 1 << j % keys
    turn = {"mask": unpack(made, keys).astype(np.int64).ravel(), "rows": rows}
    if valid is not None:
        turn["valid"] = [valid >> j & 1 for j in range(keys)]
    (out,) = trace(ATTENTION_MASK, [turn], {"window": window, "n_sink": sinks})
    found = first_violation(made, cached=cached, window=window, sinks=sinks, valid=valid)
    if found is None:
        assert out["kind"] == 0
    else:
        assert (KINDS.index(found.kind), found.row, found.column) == (out["kind"], out["row"], out["column"])


def test_padding_sees_itself():
    """A query that is no valid key sees its own key only: an empty row would have no softmax."""
    made = mask_rows(cached=0, rows=4, valid=0b1100)
    assert made == (0b1, 0b10, 0b100, 0b1100)


HALVES = {"cached": 2, "window": 3, "sinks": 1}


def additive(rows=5, **lengths):
    """Give an additive mask in half precision."""
    made = unpack(mask_rows(rows=rows, **lengths), lengths["cached"] + rows)
    return np.where(made, 0, -np.inf).astype(np.float16)


@pytest.mark.capability("issue 5 §4: repair_mask in three stages, each counted, over all half-precision patterns")
def test_all_half_patterns_at_once():
    """A mask of 256 rows with every pattern in one cell: three are legal, and what each means is counted."""
    right = additive(rows=256, cached=0)
    patterns = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    found = repair_mask(patterns.view(np.float16), cached=0, parity=row_parity(right))
    assert (found.mask.view(np.uint16) == right.view(np.uint16)).all()
    assert found.odd_cells == 65536 - 3
    with np.errstate(invalid="ignore"):
        shown = patterns.view(np.float16).astype(np.float64) > -32752
    assert found.wrong_cells == (shown != (right == 0)).sum()
    assert found.parity_rows == (row_parity(patterns) != row_parity(right)).sum()


@pytest.mark.parametrize("cell", [(0, 0), (2, 1), (4, 6)])
def test_a_pattern_in_a_seen_a_hidden_and_an_own_cell(cell):
    """The mask comes out right, and any other pattern than the right one is noticed, by the parity at least."""
    right = additive(**HALVES)
    parity = row_parity(right)
    for pattern in [*range(0, 65536, 501), 0xFBFF, 0xFC00, 0xFC01, 0xFFFF]:
        damaged = right.view(np.uint16).copy()
        damaged[cell] = pattern
        found = repair_mask(damaged.view(np.float16), parity=parity, **HALVES)
        assert (found.mask.view(np.uint16) == right.view(np.uint16)).all()
        changed = pattern != right.view(np.uint16)[cell]
        assert (found.was_damaged, found.parity_rows) == (changed, changed)


def test_parity_sees_what_the_values_cannot():
    """A cell with the other legal value for a hidden key means the same; its row's parity is another."""
    right = additive(**HALVES)
    parity = row_parity(right)
    least = right.copy()
    least[0, 3] = np.float16(-65504)
    found = repair_mask(least, parity=parity, **HALVES)
    assert (found.parity_rows, found.odd_cells, found.wrong_cells) == (1, 0, 0)
    assert repair_mask(right, parity=parity[:2], **HALVES).parity_rows == len(right)
    assert not repair_mask(right, parity=parity, **HALVES).was_damaged


FORMATS = ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8"]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("blocked", ["infinite", "least"])
def test_additive_in_every_format(kind, blocked):
    """A right mask of floats stays what it is; damage is named, and mended in the format that was given."""
    right, least = additive(**HALVES).astype(kind), np.finfo(kind).min
    assert not repair_mask(right, parity=row_parity(right), **HALVES).was_damaged
    hidden = np.where(right == 0, 0.0, -np.inf if blocked == "infinite" else least).astype(kind)
    assert not repair_mask(hidden, **HALVES).was_damaged
    damaged = hidden.copy()
    damaged[0, 0], damaged[2, 2] = np.nan, least  # both are seen
    damaged[0, 4], damaged[0, 6], damaged[4, 1] = -1.5, np.inf, 1.0  # hidden, hidden and out of the window
    found = repair_mask(damaged, parity=row_parity(hidden), **HALVES)
    assert (found.odd_cells, found.wrong_cells, found.parity_rows) == (4, 5, 3)
    assert found.mask.dtype == np.dtype(kind)
    assert (found.mask == right).all()


def test_float32_without_a_cache():
    """The usual mask of a prompt is right as it is, and not made one of 0 and 1."""
    mask = np.triu(np.full((3, 3), -np.inf, np.float32), 1)
    found = repair_mask(mask, cached=0)
    assert (found.was_damaged, found.mask.tolist()) == (False, mask.tolist())


@pytest.mark.parametrize("kind", ["c8", "O", "U1"])
def test_other_formats(kind):
    """They are refused, not guessed at."""
    with pytest.raises(ValueError, match="a mask is bool"):
        repair_mask(np.zeros((2, 2)).astype(kind), cached=0)


@given(st.integers(0, 6), st.integers(1, 6), st.integers(0, 3), st.lists(st.integers(-1, 3), min_size=72, max_size=72))
def test_a_mask_of_integers(cached, rows, window, noise):
    """Whatever stands in it, the result is the reference, in the same number format; the counts are those of cells."""
    keys = cached + rows
    given_ = np.array(noise[: rows * keys] + [0] * max(rows * keys - 72, 0)).reshape(rows, keys)
    found = repair_mask(given_, cached=cached, window=window)
    reference = unpack(mask_rows(cached=cached, rows=rows, window=window), keys)
    assert (found.mask == reference).all()
    assert found.mask.dtype == given_.dtype
    assert found.odd_cells == np.isin(given_, (0, 1), invert=True).sum()
    assert found.wrong_cells == ((given_ > 0) != reference).sum()


def test_the_sources_repair_would_lose_all_keys():
    """A right boolean mask stays as it is; a mask of another shape is made anew."""
    right = np.tril(np.ones((4, 4), bool))
    assert not repair_mask(right, cached=0).was_damaged
    other = repair_mask(right, cached=2)
    assert (other.mask.shape, other.wrong_cells) == ((4, 6), 24)
    assert other.mask.dtype == bool
    with pytest.raises(UsageError, match="two dimensions"):
        repair_mask([1, 0], cached=0)


def test_rows_of_padding_count_for_nothing():
    """What padding sees is not wrong, and comes out as its own key."""
    mask = np.tril(np.ones((3, 3), np.int64))
    mask[0] = 0
    mask[:, 0] = 0
    found = repair_mask(mask, cached=0, valid=0b110)
    assert (found.wrong_cells, found.mask[0].tolist()) == (0, [1, 0, 0])


WRONG = [-1, True, 1.5, math.nan, math.inf, "1", None, 1 << 63]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["cached", "rows", "window", "sinks"])
def test_lengths_that_are_none(name, wrong):
    """NaN is no missing window, and a length is never negative, at any of the doors."""
    lengths = {"cached": 2, "rows": 1, "window": 2, "sinks": 1, name: wrong}
    with pytest.raises(UsageError, match=f"{name} is a whole number"):
        mask_rows(**lengths)
    if name != "rows":
        del lengths["rows"]
        with pytest.raises(UsageError, match=f"{name} is a whole number"):
            repair_mask(np.ones((1, 3), bool), **lengths)
        with pytest.raises(UsageError, match=f"{name} is a whole number"):
            first_violation([7], **lengths)


def test_more_sinks_than_memory_has_bits():
    """Sinks beyond the last key are those up to it."""
    assert mask_rows(cached=3, rows=2, window=1, sinks=2**62) == mask_rows(cached=3, rows=2)


@pytest.mark.parametrize("rows", [[1.5], ["1"], [None], [1 << 3], [-1]])
def test_rows_that_are_none(rows):
    """What is no packed row of so many keys is not unpacked."""
    with pytest.raises(UsageError, match=r"packed rows are whole numbers|a row has keys beyond"):
        unpack(rows, 3)


@pytest.mark.parametrize("mask", [np.zeros((1, 2)), np.zeros(2, bool), [["a"]], None])
def test_a_mask_that_cannot_be_packed(mask):
    """Floats would be read the wrong way round: an additive 0 shows its key."""
    with pytest.raises(UsageError, match="a mask to pack"):
        pack(mask)


def test_rows_of_numpy_numbers():
    """They are packed rows like Python's."""
    assert first_violation(np.array([1, 3]), cached=0) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["position", "window", "sinks"])
def test_a_next_row_that_is_none(name, wrong):
    """Each number of the next row is named when it is none, and so is the row before."""
    numbers = {"position": 1, "window": 2, "sinks": 1, name: wrong}
    with pytest.raises(UsageError, match=f"{name} is a whole number"):
        next_row(1, **numbers)
    with pytest.raises(UsageError, match="packed rows are whole numbers"):
        next_row(1.0, 1)  # type: ignore[arg-type]
