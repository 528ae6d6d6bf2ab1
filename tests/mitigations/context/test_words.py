from __future__ import annotations

import sys
import unicodedata
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.mitigations.context import ContextIndex, words
from stabilitykit.mitigations.context.scanning import COLUMNS
from stabilitykit.mitigations.context.words import END_OF_MESSAGE, Vocabulary
from tests.naive.words import NaiveWords

NAMES = (
    "tokens", "words", "stems", "new", "names", "numbers", "firsts", "seconds", "questions", "sentences", "characters",
)  # fmt: skip
PIECES = (
    "a Running runs RUN the I my Your We relational hopping skies 12 1st x_y def f(x): don't café CAFÉ Straße ΟΔΟΣ "
    "ΣΑΣ Σ İstanbul ıI \u212a \u212aing ǅ ª ² ٣٤ Здравствуй 我 你好 中国人 ー \u3099 가나 한글。 ？ ? ! . ... 😀 "
    "👩\u200d👩 \ud800 \udfff \u0301 e\u0301 \u1680 \x1c _ ` \ufeff ﬁ Ⅷ supercalifragilisticexpialidocious 123456789"
).split(" ")
TEXTS = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join),
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    st.text(st.characters(exclude_characters=END_OF_MESSAGE), max_size=40),
    st.text(st.characters(codec="ascii", exclude_characters=END_OF_MESSAGE), max_size=40),
)


def read(known, texts):
    """Read some messages; gives what the twin gives."""
    stems, counts = known.read(texts)
    return stems.tolist(), [Counter(dict(zip(NAMES, row, strict=True))) for row in counts.tolist()]


@pytest.mark.parametrize("is_compiled", [True, False])
def test_against_the_twin(is_compiled):
    """Stems, counts and queries are those of the definition: Latin, CJK, code, emoji, lone surrogates, nothing."""

    @given(st.lists(TEXTS, max_size=4), st.lists(TEXTS, max_size=2), TEXTS)
    def same(first, more, query):
        known, twin = Vocabulary(is_compiled), NaiveWords()
        for texts in (first, more):
            assert read(known, texts) == twin.read(texts)
        assert len(known) == len(twin.stems)
        assert known.query(query) == twin.query(query)
        assert len(known) == len(twin.stems)

    same()


def test_every_character():
    """Each character that means something, alone and inside a word."""
    every = [c for c in map(chr, range(1, sys.maxunicode + 1)) if unicodedata.category(c) not in ("Cn", "Co")]
    assert len(every) > 140_000
    blocks = [every[k : k + 1024] for k in range(0, len(every), 1024)]
    for glue in (" ", "x"):
        known, twin = Vocabulary(), NaiveWords()
        for block in blocks:
            twin.stems.clear()  # it looks through a list
            known.forget(0)
            text = glue.join(block)
            assert read(known, [text]) == twin.read([text]), f"{ord(block[0]):x}"


def test_more_words_than_there_is_room_for():
    """Tables grow while a text is read, and forms that share a place in the cache stay apart."""
    texts = [" ".join(f"w{k:x}" for k in range(first, first + 700)) for first in (0, 300)] * 2
    known, twin = Vocabulary(), NaiveWords()
    for text in texts:
        assert read(known, [text]) == twin.read([text])
    assert len(known) == len(twin.stems) > 900


def test_a_word_of_any_length():
    """A word may fill a text; its tokens count."""
    stems, counts = Vocabulary().read(["A" * 100_000 + "ing"])
    assert stems.tolist() == [0, -1]
    assert counts[0, NAMES.index("tokens")] == 12_501


def test_what_is_forgotten_is_new_again():
    """An edited message leaves nothing behind."""
    known = Vocabulary()
    read(known, ["plums figs", "pears plums"])
    known.forget(2)
    assert len(known) == 2
    assert known.query("pears figs") == ([1], [])
    assert read(known, ["figs kiwis"])[1][0]["new"] == 1


def test_an_edit_is_as_if_it_had_always_been_so():
    """An index whose last messages were changed is the index of the changed list."""
    chat = [{"role": "user", "content": text} for text in ("Plums and figs", "Pears", "你好。Pears, kiwis?")]
    edited, fresh = ContextIndex(), ContextIndex()
    edited.sync(chat)
    chat[1:] = [{"role": "user", "content": "Kiwis! Pears."}, {"role": "user", "content": "你们 plums"}]
    edited.sync(chat)
    fresh.sync(chat)
    for name in ("stems", "counts", "tokens"):
        np.testing.assert_array_equal(getattr(edited, name), getattr(fresh, name))
    assert len(edited.words) == len(fresh.words)


def test_the_mark_between_messages_is_refused():
    """A text with the mark in it would have more ends than rows; an index replaces it."""
    with pytest.raises(ValueError, match="mark"):
        Vocabulary().read(["Plums" + END_OF_MESSAGE])
    index = ContextIndex()
    index.sync([{"role": "user", "content": "Plums\0figs\0"}, {"role": "user", "content": "\0"}])
    assert index.stems.tolist() == [0, 1, -1, -1]


def test_conversations_share_nothing():
    """What one conversation says changes nothing in another, not even the numbers of its stems."""
    one, other = Vocabulary(), Vocabulary()
    read(one, ["plums figs pears"])
    assert other.query("plums") == ([], [])
    assert read(other, ["pears plums"])[0] == [0, 1, -1]


def test_without_a_compiler(monkeypatch):
    """Where there is no compiler plain Python gives the same."""
    expected = read(Vocabulary(), ["Plums, 我 figs?"])
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    words._compiled.cache_clear()
    try:
        assert Vocabulary()._entry is None
        assert read(Vocabulary(), ["Plums, 我 figs?"]) == expected
    finally:
        words._compiled.cache_clear()


def test_the_columns_are_all_named():
    """The twin counts what the pass counts."""
    assert len(NAMES) == COLUMNS
