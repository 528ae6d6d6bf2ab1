"""The words of messages by regular expressions, strings and dictionaries, one word at a time."""

from __future__ import annotations

import re
from collections import Counter

from tests.naive.porter import stem

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
WORD = re.compile(rf"[^\W_{CJK}]+|[{CJK}]|[^\w\s]|_")
IS_CJK = re.compile(f"[{CJK}]")
STOP = frozenset(
    "a about after again all also am an and any are as at be because been before being both but by can could d did "
    "do does doing down during each few for from further had has have he her here him his how i if in into is it "
    "its just kind ll m many me more most much my name no nor not now of off on once only or other our out over own "
    "re s same she should so some such t than that the their them then there these they this those through to too "
    "type under until up ve very was we were what when where which while who whom why will with would you your".split()
)
FIRST = "i my we our me us mine ours 我".split()
SECOND = "you your yours yourself 你 您".split()


def stem_of(word: str) -> str | None:
    """Give the stem, None for marks and stop words."""
    low = word.lower()
    if not word[0].isalnum() or low in STOP:
        return None
    return stem(low) if low.isascii() else low


def tokens_of(word: str) -> int:
    """Estimate the tokens of a word."""
    size = 8 if word.isascii() and not word.isdigit() else 3
    return -(-len(word) // size)


class NaiveWords:
    """A conversation: its stems in the order of first sight."""

    def __init__(self) -> None:
        self.stems: dict[str, int] = {}

    def read(self, texts: list[str]) -> tuple[list[int], list[Counter[str]]]:
        """Give the number of each word's stem (-1: none; one more -1 ends a message), and what each message has."""
        numbers, counts = [], []
        for text in texts:
            found: Counter[str] = Counter(words=1)
            is_start = True
            for word in WORD.findall(text):
                low, root = word.lower(), stem_of(word)
                found["words"] += 1
                found["tokens"] += tokens_of(word)
                found["stems"] += root is not None
                found["new"] += root is not None and root not in self.stems
                found["names"] += word[0].isalnum() and word[0].isupper() and low not in FIRST and not is_start
                found["numbers"] += word[0].isdigit()
                found["firsts"] += low in FIRST
                found["seconds"] += low in SECOND
                found["questions"] += word in "?？"
                found["sentences"] += word in ".!?。！？"
                found["characters"] += IS_CJK.match(word) is not None
                if root is not None and root not in self.stems:
                    self.stems[root] = len(self.stems)
                numbers.append(-1 if root is None else self.stems[root])
                is_start = word in ".!?。！？"
            numbers.append(-1)
            counts.append(found)
        return numbers, counts

    def query(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Give the known stems, and the pairs of known CJK characters side by side."""
        words = WORD.findall(text)
        known = [self.stems.get(stem_of(w) or "", -1) for w in words]
        pairs = [
            (known[k], known[k + 1])
            for k in range(len(words) - 1)
            if min(known[k : k + 2]) >= 0 and IS_CJK.match(words[k]) and IS_CJK.match(words[k + 1])
        ]
        return [code for code in known if code >= 0], pairs
