"""The stem of an English word, by Porter's algorithm.

References
----------
.. [1] M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980.
"""

from __future__ import annotations

__all__ = ["stem"]

_KINDS = str.maketrans({chr(k): "v" if chr(k) in "aeiou" else "c" for k in range(97, 123)})
_STEP2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "abli": "able",
    "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate",
    "ator": "ate", "alism": "al", "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al",
    "iviti": "ive", "biliti": "ble",
}  # fmt: skip
_STEP3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_ENDS2, _ENDS3 = tuple(_STEP2), tuple(_STEP3)
_STEP4 = (
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize", "sion",
    "tion", "al", "er", "ic", "ou",
)  # fmt: skip


def _shape(word: str) -> str:
    """Write v for a vowel and c for a consonant; y is a vowel behind a consonant."""
    kinds = word.translate(_KINDS)
    if "y" in word:
        for k in range(1, len(word)):
            if word[k] == "y" and kinds[k - 1] == "c":
                kinds = kinds[:k] + "v" + kinds[k + 1 :]
    return kinds


def _measure(root: str) -> int:
    return _shape(root).count("vc")


def _is_short(root: str) -> bool:
    return _shape(root).endswith("cvc") and root[-1] not in "wxy"


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
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(_replaced(word, _STEP2, _ENDS2), _STEP3, _ENDS3)
    if suffix := _suffix(word, _STEP4):
        cut = 3 if suffix in ("sion", "tion") else len(suffix)
        if _measure(word[:-cut]) > 1:
            word = word[:-cut]
    return _ending(word)


def _suffix(word: str, suffixes: tuple[str, ...]) -> str:
    """Give the first of the suffixes that the word ends in, "" where it ends in none, as most do."""
    return next(s for s in suffixes if word.endswith(s)) if word.endswith(suffixes) else ""


def _plural(word: str) -> str:
    if word.endswith("sses") or word.endswith("ies"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _participle(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    for suffix in ("ed", "ing"):
        root = word[: -len(suffix)]
        if word.endswith(suffix) and "v" in _shape(root):
            if root.endswith(("at", "bl", "iz")):
                return root + "e"
            if len(root) > 1 and root[-1] == root[-2] and root[-1] not in "aeioulsz":
                return root[:-1]
            return root + "e" if _measure(root) == 1 and _is_short(root) else root
        if word.endswith(suffix):
            return word
    return word


def _replaced(word: str, table: dict[str, str], suffixes: tuple[str, ...]) -> str:
    suffix = _suffix(word, suffixes)
    root = word[: len(word) - len(suffix)]
    return root + table[suffix] if suffix and _measure(root) else word


def _ending(word: str) -> str:
    if word.endswith("e"):
        root = word[:-1]
        if (size := _measure(root)) > 1 or (size == 1 and not _is_short(root)):
            word = root
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
