"""The words of one conversation as numbers: their stems, and what its messages are made of.

CJK characters are words of their own here; pairs of them are found where they are searched for. Nothing is shared
between conversations but what is true of every text.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Sequence
from ctypes import addressof, c_char
from functools import cache
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabilitykit.kernels.warmup import warm_up
from stabilitykit.mitigations.context import scanning as s
from stabilitykit.mitigations.context.porter import RULES, stem
from stabilitykit.mitigations.context.tokens import CJK, tokens_of_word

__all__ = ["END_OF_MESSAGE", "Vocabulary"]

END_OF_MESSAGE = "\0"
_STOP = (
    "a about after again all also am an and any are as at be because been before being both but by can could d did "
    "do does doing down during each few for from further had has have he her here him his how i if in into is it "
    "its just kind ll m many me more most much my name no nor not now of off on once only or other our out over own "
    "re s same she should so some such t than that the their them then there these they this those through to too "
    "type under until up ve very was we were what when where which while who whom why will with would you your".split()
)
_SPECIAL = {
    s.STOPS: _STOP,
    s.FIRST: "i my we our me us mine ours 我".split(),
    s.SECOND: "you your yours yourself 你 您".split(),
    s.ASKS: "?？",
    s.ENDS: ".!?。！？",
    s.CLOSES: END_OF_MESSAGE,
}
_FLAGS: dict[str, int] = {}
for _flag, _words in _SPECIAL.items():
    for _word in _words:
        _FLAGS[_word] = _FLAGS.get(_word, 0) | _flag

_RANGES = [(CJK[k], CJK[k + 2]) for k in range(0, len(CJK), 3)]
_POINTERS = Struct(f"={len(s.KINDS)}q")
_STATE = _POINTERS.size
_FORMS = _STATE + 8 * s.STATE
_CHARACTERS = "utf-32-le" if sys.byteorder == "little" else "utf-32-be"
_FORMATS = {"i8": "q", "u4": "I", "i4": "i", "u2": "H"}
_FEWEST, _MOST_FORMS = 64, 1 << 16


def _kind(character: str) -> int:
    if any(low <= character <= high for low, high in _RANGES):
        return s.CJK if character.isalnum() else s.CJK_MARK
    if character.isalnum():
        return s.LETTER
    return s.SPACE if character.isspace() else s.MARK


def _letter(character: str) -> int:
    low = character.lower()
    is_odd = len(low) > 1 or character == "Σ" or (low.isascii() and not character.isascii())
    kinds = ((s.CAPITAL, character.isupper()), (s.DIGIT, character.isdigit()), (s.ODD, is_odd))
    return ord(low[0]) | sum(bit for bit, has_it in kinds if has_it)


def _address(block: bytearray) -> int:
    return addressof(c_char.from_buffer(block))


def _power(least: int) -> int:
    return 1 << (max(least, _FEWEST) - 1).bit_length()


def _hashed(word: str) -> int:
    return s.hashed(_SEED, [*map(ord, word)], 0, len(word))


def _specials() -> NDArray[np.int64]:
    rows = np.zeros(2 * s.SPECIALS, np.int64)
    for word, flags in _FLAGS.items():
        key = _hashed(word)
        row = s.special(key, rows)
        rows[2 * row : 2 * row + 2] = key, flags
    return rows


_SEED = secrets.randbits(62)
_KINDS, _LETTERS = np.zeros(sys.maxunicode + 1, np.uint16), np.zeros(sys.maxunicode + 1, np.uint32)
_SHARED = _KINDS, _LETTERS, _specials(), np.array(RULES, np.int64)
"""What is true of every text; of characters what was needed so far, for all of Unicode seldom is."""
_SHARED_AT = tuple(block.ctypes.data for block in _SHARED)


def _learn(character: int) -> None:
    """Look at a character and its 255 neighbours."""
    first = character & ~255
    for k in range(first, first + 256):
        kind = _kind(chr(k))
        _LETTERS[k] = _letter(chr(k)) if kind == s.LETTER else 0
        _KINDS[k] = kind  # last: it tells other threads that the letter is there


@cache
def _compiled() -> Callable[[int], int] | None:
    warm = warm_up(s.scan, s.KINDS, ())
    return None if warm is None else warm.entry


def _look(word: str) -> tuple[int, int, int]:
    """Give what ``scanning.look_at_word`` gives, of any word."""
    low = word.lower()
    flags = _FLAGS.get(low, 0)
    if word[0].isdigit():
        flags |= s.NUMBER
    if word[0].isupper() and not flags & s.FIRST:
        flags |= s.NAME
    root = stem(low) if low.isascii() else low
    return -1 if flags & s.STOPS else _hashed(root), tokens_of_word(word), flags & ~s.STOPS


class Vocabulary:
    """A number for every stem, in the order of first sight.

    Parameters
    ----------
    is_compiled
        Read with compiled code (the first time in a process costs its loading); None: where there is a compiler.

    Examples
    --------
    >>> words = Vocabulary()
    >>> stems, counts = words.read(["The cats saw a cat"])
    >>> stems.tolist(), len(words), words.query("Cats?")
    ([-1, 0, 1, -1, 0, -1], 2, ([0], []))
    """

    def __init__(self, is_compiled: bool | None = None) -> None:
        self._entry = None if is_compiled is False else _compiled()
        self._size = self._listed = self._room = 0
        self._hashes, self._slots = bytearray(), bytearray()

    def __len__(self) -> int:
        return self._size

    def read(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Take in some messages.

        Returns
        -------
        stems
            i32[words], -1 for marks and stop words, one more -1 for the end of a message.
        counts
            i32[messages, COLUMNS], the columns of ``scanning``.

        Raises
        ------
        ValueError
            ``END_OF_MESSAGE`` is in a text.
        """
        text = END_OF_MESSAGE.join([*texts, ""])
        if text.count(END_OF_MESSAGE) != len(texts):  # there is a row for each end, and not one more
            raise ValueError("the mark between messages is in a message")
        self._make_room(self._size + len(text) // 32)
        return self._scan(text, len(texts), True)

    def query(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Give what to search for: the known stems of a text, and pairs of its CJK characters; nothing is taken in."""
        stems: list[int] = []
        pairs: list[tuple[int, int]] = []
        before = -1
        for term in self._scan(text, 0, False)[0].tolist() if self._size else []:
            stem_here = term & ~s.CJK_TERM if term >= 0 else -1
            is_cjk = stem_here != term
            if stem_here >= 0:
                stems.append(stem_here)
            if is_cjk and before >= 0:
                pairs.append((before, stem_here))
            before = stem_here if is_cjk else -1
        return stems, pairs

    def forget(self, stems: int) -> None:
        """Keep only so many stems, the first ones."""
        self._size, self._listed, self._slots = stems, 0, bytearray(8 * self._room)

    def _make_room(self, stems: int) -> None:
        if stems >= self._room:
            room = _power(stems + 1)
            self._hashes = self._hashes + bytes(8 * (room - self._room))
            self._slots, self._listed, self._room = bytearray(8 * room), 0, room

    def _scan(self, text: str, messages: int, is_kept: bool) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Run the pass over a text; all that it needs for this once lies in one block."""
        size = len(text)
        forms = min(_power(size // 8), _MOST_FORMS)
        at_text = _FORMS + 16 * forms
        at_out = at_text + 4 * size
        held = bytearray(at_out + 4 * (messages * s.COLUMNS + size))
        memory: Any = memoryview(held)
        memory[at_text:at_out] = text.encode(_CHARACTERS, "surrogatepass")
        state = memory[_STATE:_FORMS].cast("q")
        state[s.SIZE], state[s.IS_KEPT], state[s.MESSAGES] = size, is_kept, messages
        state[s.KNOWN], state[s.FORMS], state[s.SEED], state[s.AFTER_END] = self._size, forms - 1, _SEED, 1
        while True:
            state[s.LISTED], state[s.SLOTS] = self._listed, 2 * self._room - 1
            asked = self._pass(held, at_text, at_out)
            self._size = self._listed = state[s.KNOWN]
            if asked == s.DONE:
                break
            if asked == s.LEARN:
                _learn(ord(text[state[s.UPTO]]))
            elif asked == s.GROW:
                self._make_room(self._room)
            else:
                told = _look(text[state[s.AT] : state[s.UPTO]])
                state[s.KEY], state[s.COST], state[s.FLAGS], state[s.IS_TOLD] = *told, 1
        counts = np.frombuffer(held, np.int32, messages * s.COLUMNS, at_out).reshape(messages, s.COLUMNS)
        return np.frombuffer(held, np.int32, state[s.SAID], at_out + counts.nbytes), counts

    def _pass(self, held: bytearray, at_text: int, at_out: int) -> int:
        own = self._hashes, self._slots
        if self._entry is not None:
            start = _address(held)
            places = (_STATE, at_text, at_out, _FORMS)
            pointers = (*(start + p for p in places), *_SHARED_AT, *map(_address, own))
            _POINTERS.pack_into(held, 0, *pointers)
            return self._entry(start)
        memory: Any = memoryview(held)
        blocks = (
            memory[_STATE:_FORMS], memory[at_text:at_out], memory[at_out:], memory[_FORMS:at_text],
            *(memoryview(b).cast("B") for b in (*_SHARED, *own)),  # type: ignore[arg-type]  # arrays say so from Python 3.12 on
        )  # fmt: skip
        return s.scan(*(block.cast(_FORMATS[kind]) for block, kind in zip(blocks, s.KINDS, strict=True)))
