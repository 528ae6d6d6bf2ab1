"""The stem of an English word, by Porter's algorithm.

References
----------
.. [1] M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980.
"""

from __future__ import annotations

import re

__all__ = ["stem"]

_C, _V = "(?:[^aeiouy]|(?<=[aeiou])y|^y)", "(?:[aeiou]|(?<=[^aeiou])y)"
_SOME = re.compile(rf"{_C}*(?:{_V}+{_C}+){{1}}")
_MORE = re.compile(rf"{_C}*(?:{_V}+{_C}+){{2}}")
_ONE = re.compile(rf"{_C}*{_V}+{_C}+{_V}*\Z")
_VOWEL = re.compile(_V)
_SHORT = re.compile(rf".*{_C}{_V}(?![wxy]){_C}\Z")
_DOUBLE = re.compile(r".*([^aeiouylsz])\1\Z")
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


def stem(word: str) -> str:
    """Give the stem of a word in lower case.

    Examples
    --------
    >>> [stem(w) for w in "paintings hoping hopped happy relational adjustable cats".split()]
    ['paint', 'hope', 'hop', 'happi', 'relat', 'adjust', 'cat']
    """
    if len(word) < 3:
        return word
    word = _participle(_plural(word))
    if word.endswith("y") and _VOWEL.search(word, 0, len(word) - 1):
        word = word[:-1] + "i"
    word = _replaced(_replaced(word, _STEP2), _STEP3)
    for suffix in _STEP4:
        if word.endswith(suffix):
            cut = 3 if suffix in ("sion", "tion") else len(suffix)
            if _MORE.match(word[:-cut]):
                word = word[:-cut]
            break
    return _ending(word)


def _plural(word: str) -> str:
    if word.endswith("sses") or word.endswith("ies"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _participle(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _SOME.match(word[:-3]) else word
    for suffix in ("ed", "ing"):
        root = word[: -len(suffix)]
        if word.endswith(suffix) and _VOWEL.search(root):
            if root.endswith(("at", "bl", "iz")):
                return root + "e"
            if _DOUBLE.match(root):
                return root[:-1]
            return root + "e" if _ONE.match(root) and not _MORE.match(root) and _SHORT.match(root) else root
        if word.endswith(suffix):
            return word
    return word


def _replaced(word: str, table: tuple[tuple[str, str], ...]) -> str:
    for suffix, new in table:
        if word.endswith(suffix):
            root = word[: -len(suffix)]
            return root + new if _SOME.match(root) else word
    return word


def _ending(word: str) -> str:
    if word.endswith("e"):
        root = word[:-1]
        if _MORE.match(root) or (_SOME.match(root) and not _SHORT.match(root)):
            word = root
    return word[:-1] if word.endswith("ll") and _MORE.match(word[:-1]) else word
