"""The words of a conversation as numbers: stems, stop words, and what a word is besides.

Every surface form is looked at once; after that a text is a lookup a word. CJK characters are words of their own here;
pairs of them are found where they are searched for.
"""

from __future__ import annotations

from itertools import chain
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from stabilitykit.mitigations.context.porter import stem
from stabilitykit.mitigations.context.tokens import CJK, TOKEN, tokens_of_word

__all__ = [
    "END",
    "FIRST",
    "IS_CJK",
    "NAME",
    "NUMBER",
    "QUESTION",
    "SECOND",
    "STEM",
    "TOKENS",
    "Vocabulary",
    "shared_vocabulary",
]

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
_MOST_WORDS = 1 << 16


_RANGES = [(CJK[k], CJK[k + 2]) for k in range(0, len(CJK), 3)]


def _is_cjk(character: str) -> bool:
    return character > "\u3000" and any(low <= character <= high for low, high in _RANGES)


class _Rows:
    """Rows of whole numbers, appended one by one and read as an array, i32[rows, width]."""

    def __init__(self, width: int) -> None:
        self._held = np.empty((1024, width), np.int32)
        self._size = 0
        self.new: list[tuple[int, ...]] = []

    def array(self) -> NDArray[np.int32]:
        size = self._size + len(self.new)
        if self.new:
            if size > len(self._held):
                self._held = np.resize(self._held, (2 * size, self._held.shape[1]))
            flat = np.fromiter(chain.from_iterable(self.new), np.int32, self._held.shape[1] * len(self.new))
            self._held[self._size : size] = flat.reshape(len(self.new), -1)
            self._size, self.new = size, []
        return self._held[:size]


class Vocabulary(dict[str, int]):
    """A number for every surface form, in the order of first sight, and its facts; threads may share it.

    Examples
    --------
    >>> words = Vocabulary()
    >>> words.read("The cats saw a cat").tolist(), words.facts[:, STEM].tolist()
    ([1, 2, 3, 4, 5], [-1, -1, 0, 1, -1, 0])
    """

    def __init__(self) -> None:
        super().__init__()
        self.stems: dict[str, int] = {}
        self._facts = _Rows(9)
        self._runs = _Runs(self)
        self._lock = Lock()
        self["\0"]  # the end of a message

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        self._facts.new.append(self._look(word))
        return number

    def _look(self, word: str) -> tuple[int, ...]:
        low = word.lower()
        is_word = word[0].isalnum()
        code = -1
        if is_word and low not in _STOP:
            code = self.stems.setdefault(stem(low) if low.isascii() else low, len(self.stems))
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
        with self._lock:
            return self._facts.array()

    def read(self, text: str) -> NDArray[np.int32]:
        """Give the numbers of the words of a text; new ones are taken in."""
        runs = text.split()  # no word has a space in it, and most runs between spaces are known already
        with self._lock:
            at = np.fromiter(map(self._runs.__getitem__, runs), np.int32, len(runs))
            starts, sizes = self._runs.spans.array()[at].T
            codes: NDArray[np.int32] = self._runs.codes.array()[:, 0]
        ends = np.cumsum(sizes)
        place = np.repeat(starts - ends + sizes, sizes) + np.arange(ends[-1] if len(ends) else 0)
        return np.asarray(codes[place])

    def query(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Give what to search for: the known stems of a text, and pairs of its CJK characters; nothing is taken in."""
        stems: list[int] = []
        pairs: list[tuple[int, int]] = []
        before = -1
        for word in map(str.lower, TOKEN.findall(text)):
            known = word[0].isalnum() and word not in _STOP
            code = self.stems.get(stem(word) if word.isascii() else word, -1) if known else -1
            is_cjk = _is_cjk(word[0])
            if code >= 0:
                stems.append(code)
            if is_cjk and min(before, code) >= 0:
                pairs.append((before, code))
            before = code if is_cjk else -1
        return stems, pairs


class _Runs(dict[str, int]):
    """A number for every run of characters without a space; the codes of its words, all runs in one list."""

    def __init__(self, words: Vocabulary) -> None:
        super().__init__()
        self._words = words
        self.codes, self.spans = _Rows(1), _Rows(2)
        self._coded = 0

    def __missing__(self, run: str) -> int:
        number = self[run] = len(self)
        found = [(self._words[word],) for word in TOKEN.findall(run)]
        self.codes.new += found
        self.spans.new.append((self._coded, len(found)))
        self._coded += len(found)
        return number


_shared = Vocabulary()


def shared_vocabulary() -> Vocabulary:
    """Give the vocabulary of this process: conversations share most of their words. A full one is left to its users."""
    global _shared
    if len(_shared) > _MOST_WORDS:
        _shared = Vocabulary()
    return _shared
