"""One cell into one value: units, sentinels, words, arrays, times."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.signals import CATALOGUE
from stabilitykit.sources.cells import ABSENT, CellError, Column, Sentinels, read_count, read_signal, read_time


def read(name, raw, **column):
    """Read a cell of a signal."""
    return read_signal(raw, Column("c", **column), CATALOGUE[name], {})


@pytest.mark.parametrize(
    ("name", "raw", "unit", "expected"),
    [
        ("itl_ms", "0.0011", "s", 1.1),
        ("itl_ms", 0.0011, "s", 1.1),
        ("itl_ms", "12", "", 12.0),
        ("kv_usage_ratio", "7", "%", 0.07),
        ("kv_usage_ratio", 48.0, "%", 0.48),
        ("decode_tokens_per_s", "3", "tokens/s", 3.0),
        ("itl_ms", "1e3", "us", 1.0),
    ],
)
def test_units(name, raw, unit, expected):
    """A value is scaled exactly by its decimal text, whatever the file's type."""
    assert read(name, raw, unit=unit) == expected


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12))
def test_text_and_number_give_the_same_bits(value):
    """CSV and Parquet of one value are one value."""
    assert read("itl_ms", value, unit="s") == read("itl_ms", repr(value), unit="s")


@pytest.mark.parametrize("raw", ["", None, "-1", -1, -1.0, "-1.000", "n/a"])
def test_sentinels(raw):
    """Empty cells and the values named as missing are missing, however they are written."""
    missing = Sentinels(frozenset((-1.0,)), frozenset(("", "n/a")))
    assert read("kv_hit_ratio", raw, missing=missing) is ABSENT


@pytest.mark.parametrize("raw", ["nan", "inf", "-Infinity", math.nan])
def test_not_finite_is_kept(raw):
    """NaN and infinity are values: the engine calls them invalid."""
    assert not math.isfinite(read("itl_ms", raw))


@pytest.mark.parametrize("raw", ["fast", "1_000", "1,5", "0x10", [1], {"a": 1}, True, "1" * 5 + "e99999"])
def test_no_number_is_an_error_without_its_text(raw):
    """What cannot be a number is refused; the message does not repeat it."""
    with pytest.raises(CellError, match="not a number") as found:
        read("itl_ms", raw)
    assert "fast" not in str(found.value)


@pytest.mark.parametrize(("raw", "expected"), [("true", True), (0, False), (1.0, True), ("No", False)])
def test_truth(raw, expected):
    """Booleans come as words and numbers."""
    assert read("is_history_truncated", raw) is expected


def test_truth_that_is_none():
    """Another number is no truth value."""
    with pytest.raises(CellError):
        read("is_history_truncated", 2)


def test_words():
    """An enum's words are translated; what is not listed stays, for the engine to judge."""
    words = {"429": "rate_limited", "null": "none"}
    assert read("error", 429, words=words) == read("error", "429", words=words) == "rate_limited"
    assert read("error", None, words=words) == "none"
    assert read("error", "strange", words=words) == "strange"
    assert read("error", "") is ABSENT


def test_over():
    """A ratio of two columns; by zero it is invalid, without the second it is missing."""
    column, spec = Column("used", over="total"), CATALOGUE["gpu_memory_ratio"]
    assert read_signal("6", column, spec, {"total": 24}) == 0.25
    assert math.isnan(read_signal("6", column, spec, {"total": 0}))
    assert read_signal("6", column, spec, {}) is ABSENT


def test_arrays():
    """Lists and JSON text become arrays of the signal's type; null inside is NaN."""
    assert read("top_token_ids", "[1, 2]").tolist() == [1, 2]
    assert read("embedding", [1, None]).dtype == np.float32
    for bad in ("[1", "7", {"a": 1}, [[1], 2], ["x"]):
        with pytest.raises(CellError, match="array"):
            read("embedding", bad)


@pytest.mark.parametrize(("raw", "expected"), [("7", 7), (7.0, 7), (7, 7)])
def test_counts(raw, expected):
    """Whole numbers come as text and as floats."""
    assert read_count(raw) == expected


@pytest.mark.parametrize("raw", [7.5, "x", True, None])
def test_no_count(raw):
    """Anything else is refused."""
    with pytest.raises(CellError):
        read_count(raw)


@pytest.mark.parametrize(
    ("raw", "unit", "expected"),
    [
        ("1.5", "s", 1.5),
        (1500, "ms", 1.5),
        ("2023-11-16 18:17:03.9799600", "datetime", 1700158623.97996),
        ("2023-11-16T18:17:03+01:00", "datetime", 1700155023.0),
    ],
)
def test_times(raw, unit, expected):
    """Times are read in seconds; dates without a zone are UTC."""
    assert read_time(raw, Column("t", unit=unit)) == pytest.approx(expected, abs=1e-6)


def test_no_time():
    """Text that is no date is refused without repeating it."""
    with pytest.raises(CellError, match="text of 9 characters"):
        read_time("yesterday", Column("t", unit="datetime"))
