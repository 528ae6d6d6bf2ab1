"""How well a score finds boundaries: F1, area under the curve, folds by dialogue, intervals by dialogue."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["auc", "best_threshold", "best_threshold_by_dialogue", "f1", "folds", "interval"]

Labels = NDArray[np.int64]
Scores = NDArray[np.float64]


def f1(labels: Labels, found: NDArray[np.bool_]) -> float:
    """Give the harmonic mean of precision and recall; 0 when there is nothing to find and nothing found."""
    return float(2 * (labels.astype(bool) & found).sum() / max(1, labels.sum() + found.sum()))


def auc(labels: Labels, scores: Scores) -> float:
    """Give the area under the ROC curve: the normalised rank sum, ties at their mean rank; NaN for one class."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    ones = int(labels.sum())
    if not 0 < ones < len(labels):
        return float("nan")
    return float((ranks[labels == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(labels) - ones)))


def best_threshold(labels: Labels, scores: Scores) -> float:
    """Find the threshold with the greatest F1: what is at it or above is found."""
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    found = 2 * np.cumsum(labels[order]) / (np.arange(1, len(labels) + 1) + labels.sum())
    is_last = np.append(ranked[1:] != ranked[:-1], True)  # equal scores are found together
    return float(ranked[np.argmax(np.where(is_last, found, -1.0))])


def best_threshold_by_dialogue(labels: Labels, scores: Scores, dialogue: Labels) -> float:
    """Find the threshold with the greatest mean F1 of dialogues; ``dialogue`` gives each score its dialogue."""
    _, group = np.unique(dialogue, return_inverse=True)
    wanted = np.bincount(group, labels)
    order = np.argsort(-scores, kind="stable")
    hits, found, each = np.zeros(len(wanted)), np.zeros(len(wanted)), (wanted == 0).astype(float)
    gains = np.empty(len(order))
    for step, i in enumerate(order):
        g = group[i]
        hits[g] += labels[i]
        found[g] += 1
        value = 2 * hits[g] / (found[g] + wanted[g])
        gains[step], each[g] = value - each[g], value
    ranked = scores[order]
    is_last = np.append(ranked[1:] != ranked[:-1], True)
    return float(ranked[np.argmax(np.where(is_last, np.cumsum(gains), -np.inf))])


def folds(count: int, parts: int, seed: int = 0) -> NDArray[np.int64]:
    """Give each of so many dialogues its fold."""
    return np.asarray(np.random.default_rng(seed).permutation(count) % parts, np.int64)


def interval(measure: Callable[[NDArray[np.int64]], float], count: int, rounds: int = 200) -> tuple[float, float]:
    """Give the 95 % bootstrap interval of a figure over so many dialogues.

    Parameters
    ----------
    measure
        Gives the figure for the dialogues drawn, by index.
    """
    rng = np.random.default_rng(0)
    drawn = [measure(rng.integers(count, size=count)) for _ in range(rounds)]
    low, high = np.nanpercentile(drawn, [2.5, 97.5])
    return float(low), float(high)
