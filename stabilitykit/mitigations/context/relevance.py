"""What a message has to do with the query: BM25 on stems, smoothed over neighbours; embeddings; the source's diagonal.

References
----------
.. [1] S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stabilitykit.mitigations.context.index import ContextIndex
from stabilitykit.mitigations.context.scanning import CHARACTERS, STEMS, WORDS

__all__ = ["MEANING", "SENTENCES", "TURNS", "bm25", "is_cjk", "neighbours", "standard", "uniqueness"]

Scores = NDArray[np.float64]
K1, B = 1.5, 0.5
TURNS, SENTENCES, MEANING = (0.5, 0.3, 0.15), (0.3,), (0.3, 0.15, 0.1)
"""What a neighbour lends, by distance: words among turns, words among Chinese sentences, embeddings."""


def bm25(index: ContextIndex, query: str) -> Scores:
    """Score every message, f64[messages]; 0 where it shares no word with the query."""
    messages = len(index.texts)
    stems, pairs = index.words.query(query)
    if not stems:
        return np.zeros(messages)
    said = index.stems
    columns = {code: k for k, code in enumerate(dict.fromkeys(stems))}
    wanted = np.full(len(index.words) + 1, -1, np.int32)
    wanted[list(columns)] = list(columns.values())
    term = wanted[said]  # the last entry, for -1, stays -1
    at = np.flatnonzero(term >= 0)
    ends = np.cumsum(index.counts[:, WORDS])
    rows, terms = np.searchsorted(ends, at, side="right"), term[at]
    weights = [float(stems.count(code)) for code in columns]
    if pairs:
        told = {pair: len(columns) + k for k, pair in enumerate(dict.fromkeys(pairs))}
        near = at[:-1][(np.diff(at) == 1)]
        found = [(p, told[pair]) for p in near.tolist() if (pair := (int(said[p]), int(said[p + 1]))) in told]
        if found:
            places, more = np.array(found, np.int64).T
            rows = np.concatenate([rows, np.searchsorted(ends, places, side="right")])
            terms = np.concatenate([terms, more])
        weights += [float(pairs.count(pair)) for pair in told]
    width = len(weights)
    counts = np.bincount(rows * width + terms, minlength=messages * width).reshape(messages, width)
    held = (counts > 0).sum(axis=0)
    idf = np.log(1 + (messages - held + 0.5) / (held + 0.5)) * np.array(weights)
    length = np.maximum(index.counts[:, STEMS], 1)
    return np.asarray((counts * (K1 + 1) / (counts + (K1 * (1 - B + B * length / length.mean()))[:, None])) @ idf)


def is_cjk(index: ContextIndex) -> bool:
    """Tell whether most words are Chinese, Japanese or Korean characters."""
    return bool(2 * index.counts[:, CHARACTERS].sum() > len(index.stems))


def neighbours(scores: Scores, shares: Sequence[float]) -> Scores:
    """Let every message lend to those around it: an answer rarely repeats the words of its question."""
    found = scores.copy()
    for distance, share in enumerate(shares, 1):
        found[distance:] += share * scores[:-distance]
        found[:-distance] += share * scores[distance:]
    return found


def standard(scores: Scores) -> Scores:
    """Give mean 0 and deviation 1, or all 0 when they are alike."""
    spread = float(scores.std()) if len(scores) else 0.0
    return (scores - scores.mean()) / spread if spread > 1e-12 else np.zeros(len(scores))


def uniqueness(vectors: NDArray[np.float64], query: int, temperature: float = 1.0) -> Scores:
    """Score as the source does: the diagonal of softmax(E E^T), raised near the query (formulas A4.1).

    It says how unlike all others a message is and never sees what is asked; its cost grows with the square of the
    messages. Kept as a named option only.
    """
    rows = vectors @ vectors.T / temperature
    rows -= rows.max(axis=1, keepdims=True)
    diagonal = np.exp(np.diag(rows)) / np.exp(rows).sum(axis=1)
    near = 1 / (1 + np.abs(np.arange(len(rows)) - query))
    return np.asarray(diagonal * (1 + np.log1p(near)))
