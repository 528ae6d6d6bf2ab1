from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.mitigations.context.porter import stem
from tests.naive.porter import stem as naive_stem

PAIRS = {
    "caresses": "caress", "ponies": "poni", "feed": "feed", "agreed": "agre", "plastered": "plaster", "bled": "bled",
    "motoring": "motor", "conflated": "conflat", "troubled": "troubl", "sized": "size", "hopping": "hop",
    "falling": "fall", "hissing": "hiss", "filing": "file", "happy": "happi", "sky": "sky", "digitizer": "digit",
    "vietnamization": "vietnam", "hopefulness": "hope", "triplicate": "triplic", "electrical": "electr",
    "goodness": "good", "allowance": "allow", "replacement": "replac", "adoption": "adopt", "probate": "probat",
    "rate": "rate", "cease": "ceas", "controlling": "control", "roll": "roll",
}  # fmt: skip


@pytest.mark.parametrize("word", PAIRS)
def test_examples_of_the_paper(word):
    """The examples of Porter's paper come out as it says."""
    assert stem(word) == PAIRS[word]


def test_against_snowball():
    """Snowball's Porter gives the same stems for real words (but for those of two letters, which ours leaves alone)."""
    snowball = pytest.importorskip("snowballstemmer", reason="snowballstemmer is not installed").stemmer("porter")
    words = "".join(c if c.isalpha() else " " for c in Path(__file__).read_text(encoding="utf-8")).lower().split()
    assert len(words) > 50
    assert [stem(w) for w in words if len(w) > 2] == [snowball.stemWord(w) for w in words if len(w) > 2]


SUFFIXES = (
    "ational tional enci anci izer abli alli entli eli ousli ization ation ator alism iveness fulness ousness aliti "
    "iviti biliti icate ative alize iciti ical ful ness ement ance ence able ible ment ant ent ism ate iti ous ive ize "
    "sion tion al er ic ou ed ing eed s ss sses ies y e ll l at bl iz"
).split()


@given(st.text("aeiouybtlszwx1", max_size=5), st.lists(st.sampled_from(SUFFIXES), max_size=3).map("".join))
def test_against_the_twin(root, ending):
    """Stemming letters in place gives what cutting strings gives."""
    assert stem(root + ending) == naive_stem(root + ending)
