"""Topic boundaries on a kind of dialogue that the model was not calibrated on: one set is left out.

The sets of one embedding model. Centre, means and deviations of a set are its own, which needs no labels; weights,
threshold and penalty come from the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.subjects.dialogue_sets import distances, line, load, permuted, trivial
from benchmarks.subjects.drift import detected
from benchmarks.subjects.report import Line, Report, Target
from stabilitykit.cli.calibrate.dialogues import Dialogue
from stabilitykit.cli.calibrate.drift import centre_of, features, labels_of
from stabilitykit.cli.calibrate.linear import fit_logistic
from stabilitykit.cli.calibrate.scoring import f1, folds

TITLE = "Topic drift: another kind of dialogue"
WANTED = {"tiage": 0.47, "dialseg711": 0.61, "sgd": 0.55}
STRENGTHS = (0.01, 0.03, 0.1, 0.3)
TIERS = (
    "five distances",
    "eight features",
    "distances and the message",
    "features and the message",
    "features and components",
)
Set = tuple[list[Dialogue], Any]


def rows(dialogues: Sequence[Dialogue], tier: str) -> Any:
    """Give what a tier weighs, the features in the set's own deviations."""
    centre = centre_of(dialogues)
    made = [features(d, centre) for d in dialogues]
    x = np.nan_to_num(np.concatenate([f for f, _ in made]))
    spread = x.std(axis=0)
    x = (x - x.mean(axis=0)) / np.where(spread > 1e-9, spread, 1.0)
    now, before = np.concatenate([u[1:] for _, u in made]), np.concatenate([u[:-1] for _, u in made])
    if tier == TIERS[0]:
        return x[:, :5]
    if tier == TIERS[1]:
        return x
    if tier == TIERS[2]:
        return np.hstack([x[:, :5], now / 0.3])
    return np.hstack([x, now / 0.3] if tier == TIERS[3] else [x, now / 0.3, before / 0.3, 5 * now * before / 0.3])


def fit(sets: Sequence[Set], strengths: Sequence[float]) -> tuple[Any, float]:
    """Fit weights, every set counting the same; penalty and threshold by mean F1 on dialogues held out of them."""
    x = np.concatenate([x for _, x in sets])
    y = [labels_of(d) for d, _ in sets]
    flat, at = np.concatenate(y), np.cumsum([len(a) for a in y])[:-1]
    counts = np.concatenate([np.full(len(a), len(x) / len(sets) / len(a)) for a in y])
    part = np.concatenate([np.repeat(folds(len(d), 3), [len(a.shift) - 1 for a in d]) for d, _ in sets])
    found = []
    for strength in strengths:
        held = np.zeros(len(x))
        for k in range(3):
            weights, bias, _ = fit_logistic(x[part != k], flat[part != k], strength, counts[part != k])
            held[part == k] = x[part == k] @ weights[0] + bias[0]
        for limit in np.quantile(held, np.linspace(0.5, 0.99, 60)):
            value = np.mean([f1(a, s >= limit) for a, s in zip(y, np.split(held, at), strict=True)])
            found.append((float(value), strength, float(limit)))
    _, strength, limit = max(found)
    weights, bias, _ = fit_logistic(x, flat, strength, counts)
    return weights[0], float(bias[0] - limit)


def transferred(test: list[Dialogue], others: Sequence[list[Dialogue]], tier: str) -> Any:
    """Give margins on a set by a model of the others."""
    weights, bias = fit([(d, rows(d, tier)) for d in others], STRENGTHS if "and" in tier else (1.0,))
    margins = rows(test, tier) @ weights + bias + 1e-12
    return np.split(margins, np.cumsum([len(d.shift) - 1 for d in test])[:-1])


def moved_threshold(test: list[Dialogue], others: Sequence[list[Dialogue]]) -> Any:
    """Give margins of the plain distance over the others' threshold."""
    weights, bias = fit([(d, np.concatenate([distances(a) for a in d])[:, None]) for d in others], (1e6,))
    return [distances(d) * weights[0] + bias for d in test]


def one_set(name: str, data: Path) -> list[Line]:
    test = load(data, name)
    others = [load(data, other) for other in WANTED if other != name]
    more = [] if name == "sgd" else [load(data, "sgd", only_user=False)]
    mixed = [permuted(d) for d in others]
    return [
        *trivial(name, test),
        line(name, "rule as written, k = 2", "source", test, detected(test, method="source_as_written", k=2.0)),
        line(name, "plain distance, threshold of the others", "reference", test, moved_threshold(test, others)),
        *(line(name, tier, "ours", test, transferred(test, others, tier)) for tier in TIERS[:-1]),
        line(name, TIERS[-1], "ours", test, transferred(test, others + more, TIERS[-1])),
        line(name, "permuted labels", "check", permuted(test), transferred(test, mixed, TIERS[1])),
    ]


def run(data: Path) -> Report:
    """Leave every set out in turn."""
    lines = [one for name in WANTED for one in one_set(name, data)]
    best = {name: max(one.figures["F1"] for one in lines if one.of == name and one.kind == "ours") for name in WANTED}
    targets = [Target(f"{name}: F1 of the best tier", value, best[name]) for name, value in WANTED.items()]
    return Report(lines, targets, NOTES)


NOTES = (
    "No tier is best everywhere. Small talk and task dialogues disagree on what a long message means and on how sure a "
    "boundary must be; a model with weights on components carries the kind of dialogue it saw. The last tier also sees "
    "every message of SGD as a turn, not the user's only: it has the most weights. That, and which tier to take, was "
    "seen on these sets.",
)
