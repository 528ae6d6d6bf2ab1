"""Fitting `drift_probe` to labelled dialogues; its eight features and the components, in NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from stabilitykit.cli.calibrate.dialogues import Dialogue
from stabilitykit.cli.calibrate.linear import fit_logistic
from stabilitykit.cli.calibrate.scoring import best_threshold, f1, folds
from stabilitykit.detectors.drift_probe import FEATURES, TOPIC_SHARE

__all__ = ["STRENGTHS", "Fit", "centre_of", "features", "fit_drift", "held_out", "labels_of", "limit_of", "logits"]

Floats = NDArray[np.float64]
Model = Mapping[str, Floats]

STRENGTHS = (0.1, 0.3, 1.0, 3.0)
"""Inverse penalties that are tried by cross-validation when components are weighed."""
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
        float64[n - 1, 8] in the order of ``FEATURES``, NaN where a length is unknown; float64[n, d].
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
    message, answer = np.log1p(dialogue.message), np.log1p(dialogue.answer)
    columns = (previous, nearest, far, length[1:], length[:-1], message[1:], message[:-1], answer[1:])
    return np.column_stack(columns), unit


def fit_drift(
    dialogues: Sequence[Dialogue], *, components: bool, strengths: Sequence[float] = STRENGTHS, seed: int = 0
) -> Fit:
    """Fit a model and its threshold.

    The penalty and the threshold are chosen on dialogues held out inside ``dialogues``, by F1.

    Parameters
    ----------
    components
        Whether the embedding's components get weights, beside the eight features.
    """
    centre = centre_of(dialogues)
    table = [_rows(d, centre, components) for d in dialogues]
    y = labels_of(dialogues)
    part = np.repeat(folds(len(dialogues), _INNER, seed), [len(t) for t in table])
    x = np.concatenate(table)
    means = _means(x)
    found: list[tuple[float, float, float]] = []
    x, spread = _scaled(x, means)
    for strength in strengths if components else (1.0,):
        held = np.zeros(len(y))
        for k in range(_INNER):
            weights, bias, _ = fit_logistic(x[part != k], y[part != k], strength)
            held[part == k] = x[part == k] @ weights[0] + bias[0]
        limit = best_threshold(y, held)
        found.append((f1(y, held >= limit), strength, limit))
    _, strength, limit = max(found)
    weights, bias, _ = fit_logistic(x, y, strength)
    return Fit(_model(weights[0], bias[0], limit, means, spread, centre), strength)


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


def _rows(dialogue: Dialogue, centre: Floats, components: bool) -> Floats:
    rows, unit = features(dialogue, centre)
    if not components:
        return rows
    return np.hstack([rows, unit[1:] * _SCALE, unit[:-1] * _SCALE, unit[1:] * unit[:-1] * _PRODUCT_SCALE])


def _means(x: Floats) -> Floats:
    """Give the mean of each feature where it is known, 0 where it never is."""
    rows = x[:, : len(FEATURES)]
    known = ~np.isnan(rows)
    return np.asarray(np.where(known, rows, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1))


def _scaled(x: Floats, means: Floats) -> tuple[Floats, Floats]:
    """Give rows with the features in deviations of theirs (unknown: 0), and the deviations (1 for a constant)."""
    count = len(FEATURES)
    known = np.where(np.isnan(x[:, :count]), means, x[:, :count])
    spread = known.std(axis=0)
    spread = np.where(spread > 1e-9, spread, 1.0)
    return np.hstack([(known - means) / spread, x[:, count:]]), spread


def _model(
    weights: Floats, bias: float, limit: float, means: Floats, spread: Floats, centre: Floats
) -> dict[str, Floats]:
    count, dim = len(FEATURES), len(centre)
    scaled = weights[:count] / spread
    model = {
        "centre": centre,
        "features": scaled,
        "means": means,
        "bias": np.array([bias - scaled @ means]),
        "threshold": 1 / (1 + np.exp(-np.array([np.nextafter(limit, -np.inf) - 1e-8]))),
    }
    if len(weights) > count:
        now, before, product = weights[count:].reshape(3, dim)
        model |= {"now": now * _SCALE, "before": before * _SCALE, "product": product * _PRODUCT_SCALE}
    return model


def held_out(
    dialogues: Sequence[Dialogue], *, components: bool, strengths: Sequence[float] = STRENGTHS, parts: int = 5
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
        model = fit_drift(kept, components=components, strengths=strengths).model
        for i in np.flatnonzero(fold == k).tolist():
            found[i] = logits(model, dialogues[i]) - limit_of(model)
    return found


def limit_of(model: Model) -> float:
    """Give the threshold of a model as a logit."""
    threshold = float(model["threshold"][0])
    return float(np.log(threshold / (1 - threshold)))
