from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.position_ids import KINDS, POSITION_IDS
from stabilitykit.detectors.trace import trace
from tests.detectors.agreement import check_compiled, check_twins
from tests.naive.position_ids import NaivePositionIds

EXTREMES = st.sampled_from([-(2**63), 2**63 - 1, 2**53, 2**53 + 1])


@st.composite
def rows(draw):
    """Give a row in order, one with jumps, or anything."""
    first, size = draw(st.integers(0, 30)), draw(st.integers(1, 9))
    row = list(range(first, first + size))
    kind = draw(st.sampled_from(["plain", "jump", "any"]))
    if kind == "jump":
        at, by = draw(st.integers(0, size - 1)), draw(st.integers(-4, 20))
        return row[:at] + [p + by for p in row[at:]]
    return draw(st.lists(st.one_of(st.integers(-2, 50), EXTREMES), max_size=9)) if kind == "any" else row


@st.composite
def turns(draw):
    """Give a row, the same places in the cache or others, and declared gaps."""
    row = draw(rows())
    other = draw(st.one_of(st.none(), st.just(row), rows()))
    return {"positions": row, "cache": other, "gaps": draw(st.lists(st.integers(-1, 9), max_size=3))}


@pytest.mark.capability("issue 3 §1: `position_ids` is its naive twin")
@given(st.lists(turns(), max_size=4), st.sampled_from([1, 40, 163840]))
def test_equals_the_naive_twin(rows, limit):
    """Any rows, caches and gaps: kernel and twin agree, unknowns included."""
    check_twins(POSITION_IDS, NaivePositionIds, [{}, *rows], {"max_position": limit})


@given(st.lists(turns(), max_size=4))
def test_compiled_equals_plain(rows):
    """Machine code gives the same bits."""
    check_compiled(POSITION_IDS, rows)


@pytest.mark.capability("issue 3 §1: positions: the first violation with its kind and place")
@pytest.mark.parametrize(
    ("row", "kind", "index"),
    [
        ([-1, 0, 1], "negative", 0),
        ([0, 1, 163840], "over", 2),
        ([0, 1, 1], "repeated", 2),
        ([5, 6, 4], "backwards", 2),
        ([5, 7, 8], "gap", 1),
        ([163838, 163839], "none", math.nan),
    ],
)
def test_each_kind_has_its_name(row, kind, index):
    """The last position must be below the limit; each other break has its name and place."""
    (out,) = trace(POSITION_IDS, [row])
    assert KINDS[int(out["kind"])] == kind
    assert out["index"] == pytest.approx(index, nan_ok=True)


def test_places_in_the_cache_must_be_the_positions():
    """Another place is named; another number of places is a length, and the row is looked at all the same."""
    row = {"positions": [7, 8, 9]}
    outs = trace(POSITION_IDS, [row | {"cache": c} for c in ([7, 8, 9], [7, 8, 10], [8, 9])])
    assert [KINDS[int(out["kind"])] for out in outs] == ["none", "cache", "length"]
    (out,) = trace(POSITION_IDS, [{"positions": [7, 7], "cache": [7]}])
    assert (KINDS[int(out["kind"])], out["violations_count"]) == ("length", 2)


def test_a_declared_jump_is_none():
    """Two sequences in one row, and sinks in front of what was kept; the same jump one place later is not declared."""
    packed = {"positions": [0, 1, 2, 0, 1]}
    outs = trace(POSITION_IDS, [packed | {"gaps": g} for g in ([3], [2], [])])
    assert [KINDS[int(out["kind"])] for out in outs] == ["none", "backwards", "backwards"]
    (out,) = trace(POSITION_IDS, [{"positions": [0, 1, 5000, 5001], "gaps": [2]}])
    assert out["kind"] == 0
