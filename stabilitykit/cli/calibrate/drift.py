"""Fitting `drift_probe` to labelled dialogues; its features and the components, in NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from stabilitykit.cli.calibrate.dialogues import Dialogue
from stabilitykit.cli.calibrate.linear import fit_logistic
from stabilitykit.cli.calibrate.scoring import auc, best_threshold, best_threshold_by_dialogue, folds
from stabilitykit.detectors.drift_probe import FEATURES, TOPIC_SHARE

__all__ = [
    *("STRENGTHS", "Fit", "centre_of", "features", "fit_drift", "held_out", "labels_of", "limit_of", "logits"),
    *("means_of", "model_of", "rows_of", "scaled", "threshold_of"),
]

Floats = NDArray[np.float64]
Model = Mapping[str, Floats]

STRENGTHS = (0.03, 0.1, 0.3, 1.0)
"""Inverse penalties, rising, that are tried by cross-validation when components are weighed."""
_SCALE = 1 / 0.3
_PRODUCT_SCALE = 5 / 0.3
"""Brings components (about 0.05) and their products nearer to the scaled features, so that one penalty suits both."""
_INNER = 3


@attrs.frozen(eq=False)
class Fit:
    """A fitted model: the arrays of its file, and the penalty that was chosen."""

    model: dict[str, Floats]
    strength: float


def centre_of(dialogues: Sequence[Dialogue]) -> Floats:
    """Give the mean embedding; no label is looked at."""
    return np.asarray(np.concatenate([d.vectors for d in dialogues]).mean(axis=0))


def labels_of(dialogues: Sequence[Dialogue]) -> NDArray[np.int64]:
    """Give the labels of all turns but the first ones."""
    return np.concatenate([d.shift[1:] for d in dialogues])


def features(dialogue: Dialogue, centre: Floats) -> tuple[Floats, Floats]:
    """Give what the detector computes.

    Returns
    -------
    features, directions
        float64[n - 1, 10] in the order of ``FEATURES``, NaN where a number is unknown; float64[n, d].
    """
    z = dialogue.vectors - centre
    length = np.linalg.norm(z, axis=1)
    unit = z / np.where(length > 0, length, 1.0)[:, None]
    topics = [unit[0]]
    for row in unit[1:-1]:
        topics.append(topics[-1] + TOPIC_SHARE * (row - topics[-1]))
    topic = np.array(topics[: len(unit) - 1]).reshape(-1, z.shape[1])
    previous = 1 - (unit[1:] * unit[:-1]).sum(axis=1)
    nearest = previous.copy()
    nearest[1:] = np.minimum(previous[1:], 1 - (unit[2:] * unit[:-2]).sum(axis=1))
    size = np.linalg.norm(topic, axis=1)
    far = 1 - (unit[1:] * topic).sum(axis=1) / np.where(size > 0, size, 1.0)
    message, answer, asks = np.log1p(dialogue.message), np.log1p(dialogue.answer), np.minimum(dialogue.questions, 1.0)
    said = (message[1:], message[:-1], answer[1:], asks[1:], asks[:-1])
    columns = (previous, nearest, far, length[1:], length[:-1], *said)
    return np.column_stack(columns), unit


def fit_drift(
    dialogues: Sequence[Dialogue],
    *,
    components: bool,
    by_dialogue: bool = False,
    strengths: Sequence[float] = STRENGTHS,
    seed: int = 0,
) -> Fit:
    """Fit a model and its threshold.

    The penalty and the threshold are chosen on dialogues held out inside ``dialogues``: the penalty by the area under
    the curve, which chance moves less than F1, the threshold by F1.

    Parameters
    ----------
    components
        Whether the embedding's components get weights, beside the features.
    by_dialogue
        Whether the threshold is the best for the mean F1 of dialogues; else for the F1 of all turns.
    """
    centre = centre_of(dialogues)
    table = [rows_of(d, centre, components) for d in dialogues]
    y = labels_of(dialogues)
    whose = np.repeat(np.arange(len(table)), [len(t) for t in table])
    part = folds(len(dialogues), _INNER, seed)[whose]
    x = np.concatenate(table)
    means = means_of(x)
    x, spread = scaled(x, means)
    tried = strengths if components else (1.0,)
    held = np.zeros((len(tried), len(y)))
    for k in range(_INNER):
        for row, strength in zip(held, tried, strict=True):
            weights, bias, _ = fit_logistic(x[part != k], y[part != k], strength)
            row[part == k] = x[part == k] @ weights[0] + bias[0]
    best = int(np.argmax([auc(y, row) for row in held]))
    strength = tried[best]
    limit = best_threshold_by_dialogue(y, held[best], whose) if by_dialogue else best_threshold(y, held[best])
    weights, bias, _ = fit_logistic(x, y, strength)
    return Fit(model_of(weights[0], bias[0], limit, means, spread, centre), strength)


def logits(model: Model, dialogue: Dialogue) -> Floats:
    """Give the model's logit of every turn but the first."""
    rows, unit = features(dialogue, model["centre"])
    rows = np.where(np.isnan(rows), model["means"], rows)
    total = rows @ model["features"] + model["bias"][0]
    if "product" in model:
        total = (
            total + unit[1:] @ model["now"] + unit[:-1] @ model["before"] + (unit[1:] * unit[:-1]) @ model["product"]
        )
    return np.asarray(total)


def rows_of(dialogue: Dialogue, centre: Floats, components: bool) -> Floats:
    """Give the features, and what the components weigh in: the embedding, the one before, their product."""
    rows, unit = features(dialogue, centre)
    if not components:
        return rows
    return np.hstack([rows, unit[1:] * _SCALE, unit[:-1] * _SCALE, unit[1:] * unit[:-1] * _PRODUCT_SCALE])


def means_of(x: Floats) -> Floats:
    """Give the mean of each feature where it is known, 0 where it never is."""
    rows = x[:, : len(FEATURES)]
    known = ~np.isnan(rows)
    return np.asarray(np.where(known, rows, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1))


def scaled(x: Floats, means: Floats) -> tuple[Floats, Floats]:
    """Give rows with the features in deviations of theirs (unknown: 0), and the deviations (1 for a constant)."""
    count = len(FEATURES)
    known = np.where(np.isnan(x[:, :count]), means, x[:, :count])
    spread = known.std(axis=0)
    spread = np.where(spread > 1e-9, spread, 1.0)
    return np.hstack([(known - means) / spread, x[:, count:]]), spread


def model_of(
    weights: Floats, bias: float, limit: float, means: Floats, spread: Floats, centre: Floats
) -> dict[str, Floats]:
    """Give the arrays of a file, from weights on scaled rows."""
    count, dim = len(FEATURES), len(centre)
    scaled = weights[:count] / spread
    made = {
        "centre": centre,
        "features": scaled,
        "means": means,
        "bias": np.array([bias - scaled @ means]),
        "threshold": threshold_of(limit),
    }
    if len(weights) > count:
        now, before, product = weights[count:].reshape(3, dim)
        made |= {"now": now * _SCALE, "before": before * _SCALE, "product": product * _PRODUCT_SCALE}
    return made


def held_out(
    dialogues: Sequence[Dialogue],
    *,
    components: bool,
    by_dialogue: bool = False,
    strengths: Sequence[float] = STRENGTHS,
    parts: int = 5,
) -> list[Floats]:
    """Give how far each turn's logit is over the threshold, by models that did not see the dialogue.

    Returns
    -------
    list of float64[n - 1]
        One for each dialogue; above 0 is a drift.
    """
    fold = folds(len(dialogues), parts)
    found: list[Floats] = [np.empty(0)] * len(dialogues)
    for k in range(parts):
        kept = [d for d, f in zip(dialogues, fold, strict=True) if f != k]
        model = fit_drift(kept, components=components, by_dialogue=by_dialogue, strengths=strengths).model
        for i in np.flatnonzero(fold == k).tolist():
            found[i] = logits(model, dialogues[i]) - limit_of(model)
    return found


def threshold_of(limit: float) -> Floats:
    """Give a model's array for a logit that is itself over the threshold."""
    return np.asarray(1 / (1 + np.exp(-np.array([np.nextafter(limit, -np.inf) - 1e-8]))))


def limit_of(model: Model) -> float:
    """Give the threshold of a model as a logit."""
    threshold = float(model["threshold"][0])
    return float(np.log(threshold / (1 - threshold)))
