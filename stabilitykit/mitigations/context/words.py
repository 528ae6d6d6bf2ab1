"""The words of a conversation as numbers: stems, stop words, and what a word is besides.

Every surface form is looked at once; after that a text is a lookup a word. CJK characters are words of their own here;
pairs of them are found where they are searched for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stabilitykit.mitigations.context.tokens import CJK, TOKEN, tokens_of_word

__all__ = ["END", "FIRST", "IS_CJK", "NAME", "NUMBER", "QUESTION", "SECOND", "STEM", "TOKENS", "Vocabulary", "stem"]

STEM, TOKENS, NAME, NUMBER, FIRST, SECOND, QUESTION, END, IS_CJK = range(9)
"""Columns of ``Vocabulary.facts``: the stem's number (-1: a mark or stop word), estimated tokens, then yes or no."""

_STOP = frozenset(
    "a about after again all also am an and any are as at be because been before being both but by can could d did "
    "do does doing down during each few for from further had has have he her here him his how i if in into is it "
    "its just kind ll m many me more most much my name no nor not now of off on once only or other our out over own "
    "re s same she should so some such t than that the their them then there these they this those through to too "
    "type under until up ve very was we were what when where which while who whom why will with would you your".split()
)
_FIRST = frozenset("i my we our me us mine ours 我".split())
_SECOND = frozenset("you your yours yourself 你 您".split())
_ENDS = frozenset(".!?。！？\0\n")
_SUFFIXES = ("ingly", "edly", "ings", "ing", "ies", "ed", "es", "ly", "s")


def stem(word: str) -> str:
    """Strip what inflection adds to an English word: plural, -ing, -ed, -ly and a last e; no dictionary.

    Examples
    --------
    >>> [stem(w) for w in "paintings painted painting hopes hoping stories stopped".split()]
    ['paint', 'paint', 'paint', 'hop', 'hop', 'stor', 'stop']
    """
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            if suffix in ("ing", "ed") and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if len(word) > 3 and word[-1] in "ey" else word


class Vocabulary(dict[str, int]):
    """A number for every surface form, in the order of first sight, and its facts.

    Examples
    --------
    >>> words = Vocabulary()
    >>> words.read("The cats saw a cat").tolist(), words.facts[:, STEM].tolist()
    ([1, 2, 3, 4, 5], [-1, -1, 0, 1, -1, 0])
    """

    def __init__(self) -> None:
        super().__init__()
        self._stems: dict[str, int] = {}
        self._new: list[tuple[int, ...]] = []
        self._facts = np.empty((0, 9), np.int32)
        self["\0"]  # the end of a message

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        self._new.append(self._look(word))
        return number

    def _look(self, word: str) -> tuple[int, ...]:
        low = word.lower()
        is_word = word[0].isalnum()
        code = -1
        if is_word and low not in _STOP:
            code = self._stems.setdefault(stem(low) if low.isascii() else low, len(self._stems))
        return (
            code,
            tokens_of_word(word) if word != "\0" else 0,
            is_word and word[0].isupper() and low not in _FIRST,
            word[0].isdigit(),
            low in _FIRST,
            low in _SECOND,
            word in "?？",
            word in _ENDS,
            _is_cjk(word[0]),
        )

    @property
    def facts(self) -> NDArray[np.int32]:
        """The facts of every form, i32[forms, 9]."""
        if self._new:
            self._facts = np.concatenate([self._facts, np.array(self._new, np.int32)])
            self._new = []
        return self._facts

    def read(self, text: str) -> NDArray[np.int32]:
        """Give the numbers of the words of a text; new ones are taken in."""
        found = TOKEN.findall(text)
        return np.fromiter(map(self.__getitem__, found), np.int32, len(found))

    def query(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Give what to search for: the known stems of a text, and pairs of its CJK characters; nothing is taken in."""
        stems: list[int] = []
        pairs: list[tuple[int, int]] = []
        before = -1
        for word in map(str.lower, TOKEN.findall(text)):
            known = word[0].isalnum() and word not in _STOP
            code = self._stems.get(stem(word) if word.isascii() else word, -1) if known else -1
            is_cjk = _is_cjk(word[0])
            if code >= 0:
                stems.append(code)
            if is_cjk and min(before, code) >= 0:
                pairs.append((before, code))
            before = code if is_cjk else -1
        return stems, pairs


_RANGES = [(CJK[k], CJK[k + 2]) for k in range(0, len(CJK), 3)]


def _is_cjk(character: str) -> bool:
    return character > "\u3000" and any(low <= character <= high for low, high in _RANGES)
