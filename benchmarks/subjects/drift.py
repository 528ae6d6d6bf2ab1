"""Topic boundaries without weights on the embedding: distances, lengths of messages, question marks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.subjects.dialogue_sets import (
    SETS,
    Arrays,
    cross_validated,
    distances,
    line,
    load,
    permuted,
    thresholded,
    trivial,
    unasked,
)
from benchmarks.subjects.report import Line, Report, Target
from stabilitykit.cli.calibrate.dialogues import Dialogue
from stabilitykit.cli.calibrate.drift import centre_of, features, held_out, labels_of
from stabilitykit.cli.calibrate.drift_pack import SEPARABLE, judge
from stabilitykit.cli.calibrate.scoring import best_threshold, f1
from stabilitykit.detectors.drift_probe import FEATURES
from stabilitykit.detectors.intent_drift import INTENT_DRIFT
from stabilitykit.detectors.trace import Instance, compiled_kernel

TITLE = "Topic drift: distances, lengths and question marks"
WANTED = {"tiage": 0.48, "dialseg711": 0.62, "sgd": 0.46}
K_GRID = (0.25, 0.5, 0.75, 1.0, 1.25)
KERNEL = compiled_kernel(INTENT_DRIFT)
OURS = "drift_probe, features"


def detected(dialogues: Sequence[Dialogue], **settings: Any) -> Arrays:
    """Run `intent_drift` afresh over each dialogue; margins over its threshold, -9 while there is none."""
    detector = Instance(INTENT_DRIFT, {"dim": dialogues[0].vectors.shape[1], **settings}, KERNEL)
    found = []
    for d in dialogues:
        detector.reset()
        rows = [detector.update({"input": v.astype(np.float32)}) for v in d.vectors][1:]
        margins = [r["distance"] - r["threshold"] if r["is_drift"] == r["is_drift"] else -9.0 for r in rows]
        found.append(
            np.array([max(m, 1e-12) if r["is_drift"] == 1 else min(m, 0.0) for m, r in zip(margins, rows, strict=True)])
        )
    return found


def fit_prior(dialogues: list[Dialogue]) -> Any:
    """Fit mean and deviation of the prior and k: the reference method."""
    far = np.concatenate([distances(d) for d in dialogues])[labels_of(dialogues) == 0]
    prior = {"mu0": float(far.mean()), "s0": float(far.std())}
    y = labels_of(dialogues)
    k = max(K_GRID, key=lambda k: f1(y, np.concatenate(detected(dialogues, **prior, k=k)) > 0))
    return lambda d: detected([d], **prior, k=k)[0]


def fit_centred(dialogues: list[Dialogue]) -> Any:
    """Fit the centre (no labels) and a threshold of the distance to the topic."""
    centre, at = centre_of(dialogues), FEATURES.index("topic")
    limit = best_threshold(labels_of(dialogues), np.concatenate([features(d, centre)[0][:, at] for d in dialogues]))
    return lambda d: features(d, centre)[0][:, at] - limit + 1e-12


def one_set(of: str, dialogues: list[Dialogue]) -> list[Line]:
    nearest = [np.minimum(a, np.r_[9.0, b]) for a, b in ((distances(d), two_before(d)) for d in dialogues)]
    mixed = permuted(dialogues)
    return [
        *trivial(of, dialogues),
        line(of, "rule as written, k = 2", "source", dialogues, detected(dialogues, method="source_as_written", k=2.0)),
        line(of, "rule corrected, k = 2", "source", dialogues, detected(dialogues, method="source_corrected", k=2.0)),
        line(of, "prior-regularised", "reference", dialogues, cross_validated(dialogues, fit_prior)),
        line(of, "nearer of two, fixed bound", "reference", dialogues, thresholded(dialogues, nearest)),
        line(of, "shipped defaults", "ours", dialogues, detected(dialogues)),
        line(of, "centred distance to the topic", "ours", dialogues, cross_validated(dialogues, fit_centred)),
        line(of, OURS, "ours", dialogues, held_out(dialogues, components=False)),
        line(of, "the same without question marks", "ours", dialogues, held_out(unasked(dialogues), components=False)),
        line(of, "permuted labels", "check", mixed, held_out(mixed, components=False)),
    ]


def two_before(dialogue: Dialogue) -> Any:
    """Cosine distance to the turn before last, from the third turn on."""
    return 1 - (dialogue.vectors[2:] * dialogue.vectors[:-2]).sum(axis=1)


def run(data: Path) -> Report:
    """Measure every set."""
    lines: list[Line] = []
    notes = [
        "Label-free means here: no weight on the embedding's components. The ten weights and the threshold of "
        f"`{OURS}` come from the training folds, as the thresholds of the reference methods do; lengths are "
        "estimated tokens. What can be had without a fitted weight is the line `centred distance to the topic`. On SGD "
        "and CrossWOZ most of the gain is the length of the message: `length of the message` has nothing else.",
    ]
    reached: dict[str, Line] = {}
    for name in SETS:
        dialogues = load(data, name)
        lines += one_set(name, dialogues)
        reached[name] = next(one for one in lines if (one.of, one.method) == (name, OURS))
        verdict = judge("distance", dialogues, [distances(d) for d in dialogues], has_limit=False)
        said = "a rule may rest on it" if verdict.is_borne_out else "`calibrate drift` refuses a rule on it"
        notes.append(f"{name}: distance to the turn before, {verdict} (wanted above {SEPARABLE}): {said}.")
    targets = [Target(f"{name}: F1", value, reached[name].figures["F1"]) for name, value in WANTED.items()]
    targets.append(Target("crosswoz: AUC", SEPARABLE, reached["crosswoz"].figures["AUC"]))
    return Report(lines, targets, notes)
