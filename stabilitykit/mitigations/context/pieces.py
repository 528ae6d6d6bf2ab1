"""A text in pieces that are never broken: sentences and fenced code."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

__all__ = ["GAP", "joined", "pieces_of"]

GAP = " … "
"""Stands where pieces were left out."""

_FENCE = re.compile(
    r"^ {0,3}(`{3,}|~{3,})[^\n]*(?:\n(?:.*?\n)?? {0,3}\1[`~]*[ \t]*(?:\n|\Z)|.*\Z)",  # one never closed goes to the end
    re.MULTILINE | re.DOTALL,
)
_SENTENCE = re.compile(r".*?(?:[。！？]+[”’」』）】》]*|[.!?]+[\"')\]]*(?=\s|\Z)|\n|\Z)\s*", re.DOTALL)


def pieces_of(text: str) -> list[str]:
    r"""Cut a text into sentences, each with the space behind it, and whole code fences; joined they are the text.

    Examples
    --------
    >>> pieces_of("It costs 3.50 euros. 太好了！走吧。\n```py\nx = 1. \n```\nDone")
    ['It costs 3.50 euros. ', '太好了！', '走吧。\n', '```py\nx = 1. \n```\n', 'Done']
    """
    found: list[str] = []
    at = 0
    for fence in _FENCE.finditer(text):
        found += _sentences(text[at : fence.start()])
        found.append(fence.group())
        at = fence.end()
    return found + _sentences(text[at:])


def _sentences(text: str) -> list[str]:
    return [s for s in _SENTENCE.findall(text) if s]


def joined(pieces: Sequence[str], kept: Collection[int]) -> str:
    """Give the text with these pieces, and marks where others stood."""
    text, before = "", -1
    for k in sorted(kept):
        text = text + pieces[k] if k == before + 1 else text.rstrip(" ") + GAP + pieces[k]
        before = k
    return text if before == len(pieces) - 1 else text.rstrip(" ") + GAP.rstrip()
