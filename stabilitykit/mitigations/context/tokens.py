"""Tokens of a text without a tokenizer: an estimate, not compared with any one vocabulary.

A word of Latin letters is one token for each eight letters begun, of any other alphabet one for each three; digits are
one for each three; a Chinese, Japanese or Korean character, and a mark, is one. Hosts that know better lend their own
counter.
"""

from __future__ import annotations

import re

__all__ = ["CJK", "IMAGE_TOKENS", "MESSAGE_TOKENS", "TOKEN", "estimate_tokens", "tokens_of_word"]

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
TOKEN = re.compile(rf"[^\W_{CJK}]+|[{CJK}]|[^\w\s]|_")
"""Words, single CJK characters and marks: what the estimate counts and what the index reads."""
MESSAGE_TOKENS = 4
"""What a chat template adds around a message: role, two marks and a line end."""
IMAGE_TOKENS = 765
"""An image of 1024 x 1024 in OpenAI's price list; the host's counter sees texts only."""


def tokens_of_word(word: str) -> int:
    """Estimate the tokens of one match of ``TOKEN``."""
    if word.isascii():
        return 1 + (len(word) - 1) // (3 if word.isdigit() else 8)
    return 1 + (len(word) - 1) // 3


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text.

    Examples
    --------
    >>> estimate_tokens("Is it antidisestablishmentarianism?"), estimate_tokens("你好，世界")
    (7, 5)
    """
    return sum(map(tokens_of_word, TOKEN.findall(text)))
