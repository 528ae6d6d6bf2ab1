from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.attention_mask import ATTENTION_MASK
from stabilitykit.detectors.trace import Instance, compiled_kernel, trace
from stabilitykit.kernels.compile import is_available
from stabilitykit.kernels.mask_bits import KINDS
from tests.detectors.agreement import check_compiled, check_twins
from tests.naive.attention_mask import NaiveAttentionMask

HALVES = st.sampled_from([0x0000, 0x8000, 0x0001, 0xFC00, 0xFBFF, 0xFBFE, 0xFC01, 0x7C00, 0xF7FF, 0xF800, -1, 70000])
COUNTS = st.one_of(st.none(), st.integers(0, 9).map(float), st.just(2.0**53))


def mask(rows, cached, window=0, sinks=0):
    """Give the mask there should be, as NumPy builds it."""
    keys = cached + rows
    grid = np.tril(np.ones((rows, keys), np.int64), cached)
    if window:
        behind = np.tril(np.ones((rows, keys), np.int64), cached - window)
        behind[:, :sinks] = 0
        grid -= behind
    return grid


@st.composite
def turns(draw):
    """Give a mask that is right, or damaged in some cells, or anything."""
    rows, cached = draw(st.integers(1, 5)), draw(st.integers(0, 70))
    cells = mask(rows, cached, draw(st.integers(0, 3)), draw(st.integers(0, 2)))
    cells = np.where(cells == 1, 0, 0xFC00) if draw(st.booleans()) else cells
    for _ in range(draw(st.integers(0, 2))):
        cells[draw(st.integers(0, rows - 1)), draw(st.integers(0, rows + cached - 1))] = draw(
            st.one_of(st.integers(-1, 3), HALVES)
        )
    valid = draw(st.one_of(st.none(), st.lists(st.integers(0, 1), min_size=rows + cached, max_size=rows + cached)))
    return {
        "mask": draw(st.sampled_from([cells.ravel().tolist()] * 4 + [None, cells.ravel().tolist()[:-1]])),
        "rows": draw(st.sampled_from([float(rows)] * 6 + [None, 0.0, 2.0**53])),
        "cached": draw(st.one_of(st.none(), st.just(float(cached)), COUNTS)),
        "valid": draw(st.sampled_from([valid, valid, [1], None])),
    }


SETTINGS = st.fixed_dictionaries(
    {"encoding": st.sampled_from(["bool", "f16"]), "window": st.integers(0, 3), "n_sink": st.integers(0, 2)}
)


@pytest.mark.capability("issue 3 §1: `attention_mask` is its naive twin, absence and odd values included")
@given(st.lists(turns(), max_size=3), SETTINGS)
def test_equals_the_naive_twin(rows, settings):
    """Any masks and lengths: kernel and twin agree, unknowns included."""
    check_twins(ATTENTION_MASK, NaiveAttentionMask, rows, settings)


@given(st.lists(turns(), max_size=3), SETTINGS)
def test_compiled_equals_plain(rows, settings):
    """Machine code gives the same bits."""
    check_compiled(ATTENTION_MASK, rows, settings)


def detector(settings):
    """Give a detector, compiled where that is possible."""
    return Instance(ATTENTION_MASK, settings, compiled_kernel(ATTENTION_MASK) if is_available() else None)


@pytest.mark.capability("issue 3 §1: a mask is checked cell by cell, brute force up to 16 keys")
@pytest.mark.parametrize("window", [0, 1, 3, 16])
@pytest.mark.parametrize("sinks", [0, 2])
def test_every_flip_up_to_16_keys_is_found_where_it_is(window, sinks):
    """All shapes with up to 16 keys: the right mask is right, and every single flipped cell is the one named."""
    found = detector({"window": window, "n_sink": sinks})
    for keys in range(1, 17):
        for rows in range(1, keys + 1):
            cells = mask(rows, keys - rows, window, sinks)
            given_ = {"mask": cells.ravel(), "rows": float(rows), "cached": float(keys - rows)}
            assert found.update(given_)["kind"] == 0
            for i in range(rows) if keys in (1, 2, 7, 16) else [rows - 1]:
                for j in range(keys):
                    cells[i, j] ^= 1
                    out = found.update(given_)
                    assert (out["row"], out["violations_count"]) == (i, 1)
                    assert out["column"] == (keys - rows + i if KINDS[int(out["kind"])] == "empty" else j)
                    cells[i, j] ^= 1


@pytest.mark.parametrize(
    ("cell", "value", "kind"),
    [
        ((1, 7), 1, "future"),
        ((1, 4), 1, "invalid"),
        ((1, 3), 1, "window"),
        ((1, 6), 0, "diagonal"),
        ((1, 0), 0, "lost"),
        ((0, 0), 0, "missing"),
        ((1, 6), 2, "value"),
        ((1, 6), 1, "none"),
    ],
)
def test_each_kind_has_its_name(cell, value, kind):
    """Three rows after five cached tokens, a window of three keys and one sink; key 4 was evicted."""
    cells = mask(3, 5, 3, 1)
    cells[:, 4] = 0
    cells[cell] = value
    turn = {"mask": cells.ravel(), "rows": 3, "valid": [1, 1, 1, 1, 0, 1, 1, 1]}
    (out,) = trace(ATTENTION_MASK, [turn], {"window": 3, "n_sink": 1})
    assert KINDS[int(out["kind"])] == kind
    assert kind == "none" or (out["row"], out["column"]) == cell


def test_an_empty_row_counts_at_its_own_key():
    """The source's mask for decoding hides new tokens from themselves; without a cache the row sees nothing."""
    (out,) = trace(ATTENTION_MASK, [{"mask": [0, 0, 1, 1], "rows": 2}])
    assert (KINDS[int(out["kind"])], out["row"], out["column"]) == ("empty", 0, 0)
    source = np.tril(np.ones((4, 4), np.int64))
    source[:, 2:] = 0
    (out,) = trace(ATTENTION_MASK, [{"mask": source.ravel(), "rows": 4}])
    assert (KINDS[int(out["kind"])], out["row"], out["column"]) == ("diagonal", 2, 2)


@pytest.mark.parametrize(
    "turn",
    [
        {"mask": [1, 0, 1], "rows": 2},
        {"mask": [1, 1], "rows": 2},
        {"mask": [1, 0, 1, 1], "rows": 2, "cached": 1},
        {"mask": [1, 0, 1, 1], "rows": 2, "valid": [1]},
        {"mask": [1], "rows": 0},
        {"mask": [1], "rows": 2.0**53},
    ],
)
def test_lengths_that_do_not_fit(turn):
    """Rows that are no part of the cells, more rows than keys, another cache, marks for other keys."""
    (out,) = trace(ATTENTION_MASK, [turn])
    assert KINDS[int(out["kind"])] == "shape"
    assert math.isnan(out["row"])


def test_rows_of_padding_are_not_compared():
    """Libraries fill the rows of padding in front differently: nothing, everything, or causal; all are fine."""
    grid = mask(4, 0)
    grid[:, 0] = 0
    for filled in ([0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]):
        grid[0] = filled
        (out,) = trace(ATTENTION_MASK, [{"mask": grid.ravel(), "rows": 4, "valid": [0, 1, 1, 1]}])
        assert out["kind"] == 0


@pytest.mark.capability(
    "issue 3 §1: damaged values of an additive mask are read as the nearest legal value and counted"
)
def test_odd_values_are_read_as_the_nearest_legal_one():
    """-30 sees its key, -60,000 does not; both are counted, and the first is named."""
    halves = np.array([0.0, -30.0, -60000.0, -np.inf, -65504.0, 0.0], np.float16)
    cells = halves.view(np.uint16).astype(np.int64)[[0, 4, 2, 0, 1, 3, 0, 5, 0]]
    (out,) = trace(ATTENTION_MASK, [{"mask": cells, "rows": 3}], {"encoding": "f16"})
    assert (KINDS[int(out["kind"])], out["row"], out["column"]) == ("value", 0, 2)
    assert (out["violations_count"], out["odd_count"]) == (2, 2)


@pytest.mark.oracle
@pytest.mark.capability("issue 3 §1: the mask there should be is that of torch and transformers")
@pytest.mark.parametrize("window", [0, 5])
def test_against_torch_and_transformers(window):
    """torch.tril's mask and the library's own causal mask, windowed or not, have nothing wrong."""
    torch = pytest.importorskip("torch", reason="torch is an extra")
    masking = pytest.importorskip("transformers.masking_utils", reason="transformers is an extra")
    found = detector({"window": window})
    for rows, cached in [(1, 0), (1, 30), (7, 0), (5, 90), (33, 64)]:
        keys = rows + cached
        made = torch.ones(rows, keys).tril(cached)
        made = made - made.tril(cached - window) if window else made
        turn = {"rows": float(rows), "cached": float(cached)}
        assert found.update(turn | {"mask": made.long().numpy().ravel()})["kind"] == 0
        seen = masking.causal_mask_function
        if window:
            seen = masking.sliding_window_causal_mask_function(window)
        place = torch.arange(keys)
        cells = [[int(seen(place[0], place[0], place[cached + i], j)) for j in place] for i in range(rows)]
        assert found.update(turn | {"mask": np.ravel(cells)})["kind"] == 0
        made[rows - 1, keys - 1] = 0
        assert found.update(turn | {"mask": made.long().numpy().ravel()})["kind"] != 0
