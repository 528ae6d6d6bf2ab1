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
from stabilitykit.mitigations.context.scanning import FIRSTS, NAMES, NEW, NUMBERS, QUESTIONS, SECONDS, SENTENCES

__all__ = ["FEATURES", "WEIGHTS", "features", "log_worth"]

FEATURES = ("length", "new words", "names", "numbers", "first person", "second person", "asks", "answers")
WEIGHTS: tuple[float, ...] = (0.61, 0.0715, 0.639, 0.69, 0.435, -0.201, -0.61, 1.14)
"""One for each of ``FEATURES``."""


def features(index: ContextIndex) -> NDArray[np.float64]:
    """Give one row a message, f64[messages, 8], in the order of ``FEATURES``."""
    said = index.counts.astype(np.float64)
    share = said[:, QUESTIONS] / np.maximum(said[:, SENTENCES], 1)
    return np.stack(
        [
            np.log(np.maximum(index.tokens, 1)),
            said[:, NEW],
            np.log1p(said[:, NAMES]),
            np.log1p(said[:, NUMBERS]),
            np.log1p(said[:, FIRSTS]),
            said[:, SECONDS],
            share,
            np.concatenate([[0.0], share[:-1]]),
        ],
        axis=1,
    )


def log_worth(index: ContextIndex, weights: Sequence[float] = WEIGHTS) -> NDArray[np.float64]:
    """Give the logarithm of the worth of each message, up to a constant."""
    return np.asarray(features(index) @ np.asarray(weights))
