"""The stem of an English word, by Porter's algorithm, in place: no word gets longer by it.

References
----------
.. [1] M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980.
"""

from __future__ import annotations

from stabilitykit.kernels import kernel
from stabilitykit.kernels.pointers import Block

__all__ = ["RULES", "stem", "stemmed"]


def _packed(text: str) -> int:
    """Give up to seven letters as one number, the last one in its lowest byte."""
    return int.from_bytes(text.encode("ascii"), "big")


_STEP2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("abli", "able"),
    ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"),
    ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"),
    ("iviti", "ive"), ("biliti", "ble"),
)  # fmt: skip
_STEP3 = (("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""))
_STEP4 = (
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize", "sion",
    "tion", "al", "er", "ic", "ou",
)  # fmt: skip
_STEPS = (
    [(suffix, len(suffix), 0, new) for suffix, new in _STEP2],
    [(suffix, len(suffix), 0, new) for suffix, new in _STEP3],
    [(suffix, 3 if suffix in ("sion", "tion") else len(suffix), 1, "") for suffix in _STEP4],
)
_SUFFIX, _SIZE, _CUT, _ABOVE, _NEW, _NEW_SIZE, _WIDTH = range(7)


def _rules() -> tuple[int, ...]:
    """Give for each step and last letter where its rows begin, then the rows, each step's in the order of the paper.

    A row is a suffix, its size, letters to cut, the measure of the rest that must be passed, what takes their place,
    and its size.
    """
    starts: list[int] = []
    rows: list[int] = []
    for step in _STEPS:
        for letter in "abcdefghijklmnopqrstuvwxyz":
            starts.append(_STARTS + len(rows))
            for suffix, cut, above, new in step:
                if suffix.endswith(letter):
                    rows += (_packed(suffix), len(suffix), cut, above, _packed(new), len(new))
    return (*starts, _STARTS + len(rows), *rows)


_STARTS = 26 * len(_STEPS) + 1
RULES = _rules()
"""For ``stemmed``."""
_SSES, _IES, _SS, _S, _EED, _ED, _ING = map(_packed, ("sses", "ies", "ss", "s", "eed", "ed", "ing"))
_AT, _BL, _IZ = map(_packed, ("at", "bl", "iz"))
_A, _E, _I, _L, _S_, _W, _X, _Y, _Z = map(ord, "aeilswxyz")
_VOWELS = sum(1 << (ord(c) - ord("a")) for c in "aeiou")
_OTHER, _CONSONANT, _VOWEL = range(3)


@kernel
def kind_of(letter: int, before: int) -> int:
    """Tell vowels from consonants; y is a vowel behind a consonant, a digit is neither."""
    if letter < _A or letter > _Z:
        return _OTHER
    if letter == _Y:
        return _VOWEL if before == _CONSONANT else _CONSONANT
    return _VOWEL if (_VOWELS >> (letter - _A)) & 1 else _CONSONANT


@kernel
def shape(p: Block, start: int, end: int) -> tuple[int, bool, bool]:
    """Give Porter's measure, whether there is a vowel, and whether the word is short: ends as "hop" does."""
    measure, has_vowel = 0, False
    first, second, third = _OTHER, _OTHER, _OTHER
    for k in range(start, end):
        kind = kind_of(p[k], third)
        if kind == _VOWEL:
            has_vowel = True
        elif kind == _CONSONANT and third == _VOWEL:
            measure += 1
        first, second, third = second, third, kind
    is_short = False
    if first == _CONSONANT and second == _VOWEL and third == _CONSONANT:
        last = p[end - 1]
        is_short = last != _W and last != _X and last != _Y
    return measure, has_vowel, is_short


@kernel
def tail(p: Block, start: int, end: int) -> int:
    """Pack the last seven letters of a word, as ``_packed`` does."""
    found = 0
    for k in range(max(start, end - 7), end):
        found = (found << 8) | p[k]
    return found


@kernel
def ends(word: int, suffix: int, size: int) -> bool:
    """Tell whether a packed word has a suffix of this size."""
    return (word & ((1 << (8 * size)) - 1)) == suffix


@kernel
def replaced(p: Block, start: int, end: int, rules: Block, step: int) -> int:
    """Apply the first rule of a step (from 0) whose suffix the word has; gives the new end."""
    letter = p[end - 1] - _A
    if letter < 0:
        return end
    word = tail(p, start, end)
    for row in range(rules[26 * step + letter], rules[26 * step + letter + 1], _WIDTH):
        if ends(word, rules[row + _SUFFIX], rules[row + _SIZE]):
            root = end - rules[row + _CUT]
            measure, _has_vowel, _is_short = shape(p, start, root)
            if measure <= rules[row + _ABOVE]:
                return end
            size = rules[row + _NEW_SIZE]
            for k in range(size):
                p[root + k] = (rules[row + _NEW] >> (8 * (size - 1 - k))) & 255
            return root + size
    return end


@kernel
def without_plural(p: Block, start: int, end: int) -> int:
    """Do step 1a."""
    word = tail(p, start, end)
    if ends(word, _SSES, 4) or ends(word, _IES, 3):
        return end - 2
    return end - 1 if ends(word, _S, 1) and not ends(word, _SS, 2) else end


@kernel
def without_participle(p: Block, start: int, end: int) -> int:
    """Do step 1b."""
    word = tail(p, start, end)
    is_eed = ends(word, _EED, 3)
    size = 3 if is_eed or ends(word, _ING, 3) else 2 if ends(word, _ED, 2) else 0
    if size == 0:
        return end
    root = end - size
    measure, has_vowel, is_short = shape(p, start, root)
    if is_eed:
        return end - 1 if measure > 0 else end
    if not has_vowel:
        return end
    word, last = tail(p, start, root), p[root - 1]
    is_cut = ends(word, _AT, 2) or ends(word, _BL, 2) or ends(word, _IZ, 2)
    is_double = root - start > 1 and last == p[root - 2] and kind_of(last, _OTHER) != _VOWEL
    if not is_cut and is_double and last != _L and last != _S_ and last != _Z:
        return root - 1
    if is_cut or (measure == 1 and is_short):
        p[root] = _E
        return root + 1
    return root


@kernel
def without_ending(p: Block, start: int, end: int) -> int:
    """Do step 5."""
    if p[end - 1] == _E:
        measure, _has_vowel, is_short = shape(p, start, end - 1)
        if measure > 1 or (measure == 1 and not is_short):
            end -= 1
    if end - start > 1 and p[end - 1] == _L and p[end - 2] == _L:
        measure, _has_vowel, is_short = shape(p, start, end - 1)
        if measure > 1:
            end -= 1
    return end


@kernel
def stemmed(p: Block, start: int, end: int, rules: Block) -> int:
    """Make a stem of the lower-case word at ``start`` to ``end``; gives the end of the stem."""
    if end - start < 3:
        return end
    end = without_participle(p, start, without_plural(p, start, end))
    if p[end - 1] == _Y:
        _measure, has_vowel, _is_short = shape(p, start, end - 1)
        if has_vowel:
            p[end - 1] = _I
    for step in range(3):
        end = replaced(p, start, end, rules, step)
    return without_ending(p, start, end)


def stem(word: str) -> str:
    """Give the stem of a word in lower case.

    Examples
    --------
    >>> [stem(w) for w in "paintings hoping hopped happy relational adjustable cats".split()]
    ['paint', 'hope', 'hop', 'happi', 'relat', 'adjust', 'cat']
    """
    letters = [*map(ord, word)]
    return "".join(map(chr, letters[: stemmed(letters, 0, len(letters), RULES)]))
