"""What trimming is compared with, written as the reference sketches do; none of it is imported by the library."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.subjects.context_talks import count_tokens
from stabilitykit.mitigations.context.messages import read_units

_STOP = set(
    "a an and are as at be but by for from had has have he her his i in is it its me my of on or our she so that the "
    "their them they this to was we were what when where which who why will with you your did does do how".split()
)
_SUFFIXES = ("ing", "edly", "ed", "ies", "es", "s", "ly")
_IDENTIFIER = re.compile(r"\b(?=\w*\d)\w{3,}\b|\b[A-Z]{3}\b|\b[A-Z0-9]{6}\b|\w+_\w+")


def stem(word: str) -> str:
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)]
    return word


def words(text: str) -> list[str]:
    found: list[str] = []
    for run in re.findall(r"[\u3400-\u9fff]+|[a-z0-9]+", text.lower()):
        if ord(run[0]) > 0x3000:
            found += [run[k : k + 2] for k in range(len(run) - 1)] or [run]
            found += run
        elif run not in _STOP:
            found.append(stem(run))
    return found


class Bm25:
    """Plain BM25 (k1 1.5, b .75)."""

    def __init__(self, documents: Sequence[list[str]]) -> None:
        self.size = len(documents)
        self.length = np.array([max(1, len(d)) for d in documents], float)
        self.counts: dict[str, dict[int, int]] = {}
        for k, document in enumerate(documents):
            for word in document:
                row = self.counts.setdefault(word, {})
                row[k] = row.get(k, 0) + 1

    def scores(self, query: Iterable[str]) -> NDArray[np.float64]:
        found = np.zeros(self.size)
        for word in query:
            if word in self.counts:
                rows = np.array(list(self.counts[word]))
                n = np.array(list(self.counts[word].values()), float)
                idf = math.log(1 + (self.size - len(rows) + 0.5) / (len(rows) + 0.5))
                found[rows] += idf * n * 2.5 / (n + 1.5 * (0.25 + 0.75 * self.length[rows] / self.length.mean()))
        return found


@lru_cache(maxsize=128)
def _bm25(texts: tuple[str, ...]) -> Bm25:
    return Bm25([words(text) for text in texts])


def _scores(talk: Any, question: str) -> NDArray[np.float64]:
    return _bm25(tuple(talk.index.texts)).scores(words(question))


def smooth(scores: NDArray[np.float64], share: float = 0.5) -> NDArray[np.float64]:
    found = scores.copy()
    found[1:] += share * scores[:-1]
    found[:-1] += share * scores[1:]
    return found


def fill(scores: NDArray[np.float64], cost: NDArray[np.int64], room: float, kept: Iterable[int] = ()) -> set[int]:
    """Take the best that still fit; of equal ones the later."""
    found = set(kept)
    left = room - sum(int(cost[k]) for k in found)
    prices = cost.tolist()
    for k in np.argsort(-(scores + 1e-6 * np.arange(len(scores)) / len(scores)), kind="stable").tolist():
        if k not in found and prices[k] <= left:
            found.add(k)
            left -= prices[k]
    return found


def last(talk: Any, question: str, budget: int) -> set[int]:
    return fill(np.arange(len(talk.messages), dtype=float), talk.index.tokens, budget)


def random(talk: Any, question: str, budget: int) -> set[int]:
    order = np.random.default_rng(len(question)).random(len(talk.messages))
    return fill(order, talk.index.tokens, budget)


def bm25_neighbours(talk: Any, question: str, budget: int) -> set[int]:
    return fill(smooth(_scores(talk, question)), talk.index.tokens, budget)


def half_window(talk: Any, question: str, budget: int) -> set[int]:
    window = last(talk, question, budget // 2)
    return fill(_scores(talk, question), talk.index.tokens, budget, window)


@lru_cache(maxsize=128)
def _idf(texts: tuple[str, ...]) -> NDArray[np.float64]:
    said = [set(re.findall(r"[a-z0-9]+", t.lower())) for t in texts]
    held: dict[str, int] = {}
    for one in said:
        for word in one:
            held[word] = held.get(word, 0) + 1
    return np.array([sum(math.log(len(texts) / held[w]) for w in sorted(one)) for one in said])


def blind_idf(talk: Any, question: str, budget: int) -> set[int]:
    return fill(_idf(tuple(talk.index.texts)) / np.sqrt(talk.index.tokens), talk.index.tokens, budget)


def hybrid(talk: Any, question: str, budget: int) -> set[int]:
    """BM25 and cosine, each between 0 and 1, added and smoothed by .3."""
    cosine = np.array([talk.asked[t] for t in talk.index.texts]) @ talk.asked[question]

    def between(x: NDArray[np.float64]) -> NDArray[np.float64]:
        spread = x.max() - x.min()
        return (x - x.min()) / spread if spread > 0 else np.zeros_like(x)

    return fill(smooth(between(_scores(talk, question)) + between(cosine), 0.3), talk.index.tokens, budget)


def has_langchain() -> bool:
    return find_spec("langchain_core") is not None


def langchain(talk: Any, question: str, budget: int) -> set[int]:
    """LangChain's own, which keeps the last messages; the answer does not depend on the question."""
    return _langchain(tuple(talk.index.texts), tuple(talk.index.tokens.tolist()), budget)


@lru_cache(maxsize=4096)
def _langchain(texts: tuple[str, ...], tokens: tuple[int, ...], budget: int) -> set[int]:
    from langchain_core.messages import HumanMessage, trim_messages

    messages = [HumanMessage(text, id=str(k)) for k, text in enumerate(texts)]
    cost = {str(k): t for k, t in enumerate(tokens)}
    done = trim_messages(messages, max_tokens=budget, token_counter=lambda ms: sum(cost[m.id] for m in ms))
    return {int(m.id or 0) for m in done}


def text(message: Any) -> str:
    """Give a message of a tool dialogue as the sketches count it."""
    calls = " ".join(f"{c['function']['name']} {c['function']['arguments']}" for c in message.get("tool_calls") or [])
    return (message.get("content") or "") + calls


@cache
def costs(point: Any) -> NDArray[np.int64]:
    """Give the tokens of each message of a tool dialogue."""
    return np.array([count_tokens(text(m)) + 4 for m in point.messages])


def last_messages(point: Any, budget: int) -> set[int]:
    """Keep the last messages, one by one, as long as they fit."""
    return set(np.flatnonzero(np.cumsum(costs(point)[::-1])[::-1] <= budget).tolist())


def langchain_messages(point: Any, budget: int) -> set[int]:
    """LangChain's own, as it is called by default."""
    from langchain_core.messages import convert_to_messages, trim_messages

    cost = costs(point).tolist()
    messages = convert_to_messages(point.messages)
    for k, message in enumerate(messages):
        message.id = str(k)
    done = trim_messages(messages, max_tokens=budget, token_counter=lambda ms: sum(cost[int(m.id or 0)] for m in ms))
    return {int(m.id or 0) for m in done}


def _asked(point: Any) -> list[str]:
    return words(next((text(m) for m in reversed(point.messages) if m["role"] == "user"), ""))


def half_window_messages(point: Any, budget: int) -> set[int]:
    """Half of the room for the last messages, the rest for those that fit what the user said last."""
    cost = costs(point)
    window = fill(np.arange(len(cost), dtype=float), cost, budget // 2)
    return fill(Bm25([words(text(m)) for m in point.messages]).scores(_asked(point)), cost, budget, window)


def bm25_units(point: Any, budget: int) -> set[int]:
    """Calls with their results as one document each, and their neighbours."""
    units = read_units(point.messages)
    scores = Bm25([[w for k in u.members for w in words(text(point.messages[k]))] for u in units]).scores(_asked(point))
    return _fill_units(point, smooth(scores), budget)


def identifier_density(point: Any, budget: int) -> set[int]:
    """Identifiers a token."""
    cost = costs(point)
    units = read_units(point.messages)
    texts = [" ".join(text(point.messages[k]) for k in u.members) for u in units]
    values = np.array([len(set(_IDENTIFIER.findall(t))) for t in texts], float)
    return _fill_units(point, values / np.array([cost[list(u.members)].sum() for u in units]), budget)


def _fill_units(point: Any, scores: NDArray[np.float64], budget: int) -> set[int]:
    units, cost = read_units(point.messages), costs(point)
    whole = np.array([cost[list(u.members)].sum() for u in units])
    return {m for k in fill(scores, whole, budget) for m in units[k].members}
