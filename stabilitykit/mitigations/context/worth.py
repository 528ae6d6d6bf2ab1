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
WEIGHTS: tuple[float, ...] = (0.62, 0.068, 0.64, 0.69, 0.44, -0.2, -0.6, 1.14)
"""One for each of ``FEATURES``."""


def features(index: ContextIndex) -> NDArray[np.float64]:
    """Give one row a message, f64[messages, 8], in the order of ``FEATURES``."""
    messages, place = len(index.texts), index.place
    facts = index.words.facts[index.codes]
    stems = facts[:, STEM]

    def count(where: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.bincount(place[where], minlength=messages).astype(np.float64)

    ends = facts[:, END] > 0
    opens = np.concatenate([[True], ends[:-1]])  # a capital there is only spelling
    first = np.empty(int(stems.max(initial=0)) + 2, np.int64)
    first[stems[::-1]] = np.arange(len(stems))[::-1]  # the last one written is the first one said
    is_new = (stems >= 0) & (first[stems] == np.arange(len(stems)))
    asks = count(facts[:, QUESTION] > 0)
    sentences = np.maximum(count(ends) - 1, 1)  # the end of a message is none
    share = asks / sentences
    return np.stack(
        [
            np.log(np.maximum(index.tokens, 1)),
            count(is_new),
            np.log1p(count((facts[:, NAME] > 0) & ~opens)),
            np.log1p(count(facts[:, NUMBER] > 0)),
            np.log1p(count(facts[:, FIRST] > 0)),
            count(facts[:, SECOND] > 0),
            share,
            np.concatenate([[0.0], share[:-1]]),
        ],
        axis=1,
    )


def log_worth(index: ContextIndex, weights: Sequence[float] = WEIGHTS) -> NDArray[np.float64]:
    """Give the logarithm of the worth of each message, up to a constant."""
    return np.asarray(features(index) @ np.asarray(weights))
