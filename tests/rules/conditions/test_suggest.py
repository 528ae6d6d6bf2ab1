"""The nearest valid name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.rules.conditions.suggest import _distance, did_you_mean, nearest
from stabilitykit.signals import CATALOGUE


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("itl_mss", "itl_ms"),
        ("ilt_ms", "itl_ms"),
        ("kv_usge_ratio", "kv_usage_ratio"),
        ("ITL_MS", "itl_ms"),
        ("gpu_temperatur_c", "gpu_temperature_c"),
        ("completely_different", ""),
        ("", ""),
        ("q", ""),
        ("i" * 65, ""),
    ],
)
def test_nearest_signal(name, found):
    """A slip of the keys finds its signal, anything else finds none."""
    assert nearest(name, CATALOGUE) == found


def test_swap_counts_once():
    """Swapped neighbours are one edit, so they win against two changed letters."""
    assert nearest("abdc", ["abxy", "abcd"]) == "abcd"


def test_order_of_candidates_does_not_matter():
    """Of equally near names the alphabetically first is given."""
    assert nearest("slow", ["slop", "blow", "slot"]) == nearest("slow", ["slot", "slop", "blow"]) == "blow"


def test_sentence():
    """The hint is a question, or nothing."""
    assert did_you_mean("trottle", ["throttle"]) == "did you mean `throttle`?"
    assert did_you_mean("zzz", ["throttle"]) == ""


@given(st.text(max_size=70), st.lists(st.text(max_size=70), max_size=8))
def test_only_candidates(name, candidates):
    """Whatever is asked, the answer is a candidate or nothing."""
    assert nearest(name, candidates) in {"", *candidates}


@given(st.sampled_from(sorted(CATALOGUE)))
def test_a_name_is_nearest_to_itself(name):
    """A valid name finds itself."""
    assert nearest(name, CATALOGUE) == name


def test_seven_edits_are_too_many():
    """However long a name is, one that is seven edits away is another name."""
    name = "a_very_long_name_of_a_signal_that_nobody_would_ever_type"
    assert nearest("x" * 6 + name[6:], [name]) == name
    assert nearest("x" * 7 + name[7:], [name]) == ""


@given(st.text("abc", max_size=8), st.text("abc", max_size=8), st.integers(0, 8))
def test_the_band_changes_no_distance(a, b, limit):
    """Looking only near the diagonal gives the same distance as looking everywhere, up to the limit."""
    assert _distance(a, b, limit) == min(_distance(a, b, 20), limit + 1)
