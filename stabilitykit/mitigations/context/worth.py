"""What a message is worth when nobody asks yet: telling facts about people, or only keeping the talk going.

The expected number of later questions about a message is log-linear in what it is made of (a Poisson regression fitted
on the recorded dialogues; ``benchmarks/subjects/context.py`` fits it again on every run, and scores no dialogue that it
was fitted on). First and second person and names are English; in other languages new words and numbers remain.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stabilitykit.mitigations.context.index import ContextIndex
from stabilitykit.mitigations.context.words import END, FIRST, NAME, NUMBER, QUESTION, SECOND, STEM

__all__ = ["FEATURES", "WEIGHTS", "features", "log_worth"]

FEATURES = ("length", "new words", "names", "numbers", "first person", "second person", "asks", "answers")
WEIGHTS: tuple[float, ...] = (0.61, 0.0715, 0.639, 0.69, 0.435, -0.201, -0.61, 1.14)
"""One for each of ``FEATURES``."""


def features(index: ContextIndex) -> NDArray[np.float64]:
    """Give one row a message, f64[messages, 8], in the order of ``FEATURES``."""
    facts = np.ascontiguousarray(index.words.facts.T)[:, index.codes]  # a row a fact: they are added up along it
    stems, ends = facts[STEM].copy(), facts[END] > 0
    first = np.empty(int(stems.max(initial=0)) + 2, np.int64)
    first[stems[::-1]] = np.arange(len(stems))[::-1]  # the last one written is the first one said
    facts[STEM] = (stems >= 0) & (first[stems] == np.arange(len(stems)))
    facts[NAME, 1:] &= ~ends[:-1]  # a capital at the start of a sentence is only spelling
    facts[NAME, :1] = 0
    starts = np.flatnonzero(np.diff(index.place, prepend=-1))  # every message has its end, so none is empty
    said = np.add.reduceat(facts, starts, axis=1).astype(np.float64)
    share = said[QUESTION] / np.maximum(said[END] - 1, 1)  # the end of a message ends no sentence
    return np.stack(
        [
            np.log(np.maximum(index.tokens, 1)),
            said[STEM],
            np.log1p(said[NAME]),
            np.log1p(said[NUMBER]),
            np.log1p(said[FIRST]),
            said[SECOND],
            share,
            np.concatenate([[0.0], share[:-1]]),
        ],
        axis=1,
    )


def log_worth(index: ContextIndex, weights: Sequence[float] = WEIGHTS) -> NDArray[np.float64]:
    """Give the logarithm of the worth of each message, up to a constant."""
    return np.asarray(features(index) @ np.asarray(weights))
