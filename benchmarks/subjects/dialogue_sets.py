"""The labelled dialogues, and how a method's answers on them become a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from benchmarks.subjects.report import Line
from stabilitykit.cli.calibrate.dialogues import Dialogue, read_dialogues
from stabilitykit.cli.calibrate.drift import labels_of
from stabilitykit.cli.calibrate.scoring import best_threshold, folds

SETS: dict[str, tuple[str, str, bool]] = {
    # name: (embeddings, label, user turns only)
    "tiage": ("embeddings_minilm_tiage.npz", "shift", False),
    "dialseg711": ("embeddings_minilm_dialseg711.npz", "shift", False),
    "sgd": ("embeddings_minilm_sgd.npz", "shift_user", True),
    "crosswoz": ("embeddings_e5small_crosswoz.npz", "shift_user", True),
}
PARTS = 5
Arrays = list[Any]
"""One array for each dialogue, of all turns but the first."""


def load(data: Path, name: str, *, only_user: bool | None = None) -> list[Dialogue]:
    """Read one set; every message as a turn, or the user's only."""
    file, label, user = SETS[name]
    folder = data / "dialogues"
    user = user if only_user is None else only_user
    found = read_dialogues(folder / file, folder / f"{name}.jsonl", label=label, only_user=user)
    return [d for d in found if len(d.vectors) > 1]


def line(of: str, method: str, kind: str, dialogues: Sequence[Dialogue], margins: Arrays) -> Line:
    """Judge margins over a threshold: above 0 is a boundary."""
    labels = [d.shift[1:].astype(bool) for d in dialogues]
    hits, size = (
        np.array([(y & (m > 0)).sum() for y, m in zip(labels, margins, strict=True)]),
        [y.sum() for y in labels],
    )
    marks = np.array(size) + [(m > 0).sum() for m in margins]
    each = np.where(marks > 0, 2 * hits / np.maximum(marks, 1), 1.0)
    over = pairs_won(labels, margins)
    pairs = np.outer(size, [(~y).sum() for y in labels])

    def measure(drawn: Any) -> tuple[float, float, float]:
        times = np.bincount(drawn, minlength=len(dialogues))  # how often each dialogue was drawn
        area = (times @ over @ times) / max(times @ pairs @ times, 1)
        return float(2 * times @ hits / max(times @ marks, 1)), float(times @ each / times.sum()), float(area)

    count = len(dialogues)
    names = ("F1", "F1 by dialogue", "AUC")
    intervals = intervals_of(measure, count)
    found = measure(np.arange(count))
    return Line(of, method, kind, dict(zip(names, found, strict=True)), dict(zip(names, intervals, strict=True)))


def pairs_won(labels: Sequence[Any], margins: Arrays) -> Any:
    """Count, for any two dialogues, the boundaries of one that are above other turns of the second; a tie is a half.

    Drawn dialogues need no ranking of their turns then.
    """
    ones = np.concatenate([m[y] for y, m in zip(labels, margins, strict=True)])
    starts = np.cumsum([0, *(y.sum() for y in labels)])
    found = np.zeros((len(labels), len(labels)))
    for j, (y, m) in enumerate(zip(labels, margins, strict=True)):
        rest = np.sort(m[~y])
        won = (np.searchsorted(rest, ones, "left") + np.searchsorted(rest, ones, "right")) / 2
        found[:, j] = np.diff(np.append(0.0, np.cumsum(won))[starts])
    return found


def intervals_of(measure: Callable[[Any], tuple[float, ...]], count: int) -> list[tuple[float, float]]:
    """Give the 95 % intervals of several figures of the same drawn dialogues."""
    rng = np.random.default_rng(0)
    drawn = np.array([measure(rng.integers(count, size=count)) for _ in range(200)])
    return [(float(low), float(high)) for low, high in np.nanpercentile(drawn, [2.5, 97.5], axis=0).T]


def thresholded(dialogues: Sequence[Dialogue], scores: Arrays) -> Arrays:
    """Turn scores into margins over the threshold with the best F1 on the other folds."""
    fold = folds(len(dialogues), PARTS)
    limits = []
    for k in range(PARTS):
        kept = np.flatnonzero(fold != k).tolist()
        limits.append(
            best_threshold(labels_of([dialogues[i] for i in kept]), np.concatenate([scores[i] for i in kept]))
        )
    return [s - limits[k] + 1e-12 for s, k in zip(scores, fold, strict=True)]


def cross_validated(
    dialogues: Sequence[Dialogue], fit: Callable[[list[Dialogue]], Callable[[Dialogue], Any]]
) -> Arrays:
    """Give margins by a method that was fitted to the other folds."""
    fold = folds(len(dialogues), PARTS)
    found: Arrays = [None] * len(dialogues)
    for k in range(PARTS):
        method = fit([d for d, f in zip(dialogues, fold, strict=True) if f != k])
        for i in np.flatnonzero(fold == k).tolist():
            found[i] = method(dialogues[i])
    return found


def distances(dialogue: Dialogue) -> Any:
    """Plain consecutive cosine distance."""
    return 1 - (dialogue.vectors[1:] * dialogue.vectors[:-1]).sum(axis=1)


def unasked(dialogues: Sequence[Dialogue]) -> list[Dialogue]:
    """Give the dialogues of a host that does not count question marks."""
    return [attrs.evolve(d, questions=np.full(len(d.shift), np.nan)) for d in dialogues]


def permuted(dialogues: Sequence[Dialogue], seed: int = 0) -> list[Dialogue]:
    """Shuffle the labels over all turns but the first ones."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(labels_of(dialogues))
    ends = np.cumsum([len(d.shift) - 1 for d in dialogues])
    parts = np.split(labels, ends[:-1])
    return [attrs.evolve(d, shift=np.r_[0, y]) for d, y in zip(dialogues, parts, strict=True)]


def trivial(of: str, dialogues: Sequence[Dialogue]) -> list[Line]:
    """What needs no idea: everything, the number of the turn, the message's length, a distance, mean + 2 sigma."""
    ones = [np.ones(len(d.shift) - 1) for d in dialogues]
    turn = [np.arange(1.0, len(d.shift)) for d in dialogues]
    far = [distances(d) for d in dialogues]
    return [
        line(of, "flag everything", "trivial", dialogues, ones),
        line(of, "turn count", "trivial", dialogues, thresholded(dialogues, turn)),
        line(
            of,
            "length of the message",
            "trivial",
            dialogues,
            thresholded(dialogues, [d.message[1:] for d in dialogues]),
        ),
        line(of, "consecutive cosine", "trivial", dialogues, thresholded(dialogues, far)),
        line(of, "mean + 2 sigma", "trivial", dialogues, [two_sigma(a) for a in far]),
    ]


def two_sigma(far: Any) -> Any:
    """Give the margin over mean + 2 deviations of all distances before."""
    margins = [-1.0 if t < 2 else far[t] - far[:t].mean() - 2 * far[:t].std() for t in range(len(far))]
    return np.array(margins)
