"""Topic boundaries without labels: distances, and models learned from joints of unlabelled dialogues."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.subjects.dialogue_sets import (
    PARTS,
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
from stabilitykit.cli.calibrate.drift import centre_of, features, held_out, labels_of, limit_of, logits
from stabilitykit.cli.calibrate.drift_pack import SEPARABLE, judge
from stabilitykit.cli.calibrate.joints import SHARE, Rounds, fit_joined, fit_joints, joined
from stabilitykit.cli.calibrate.scoring import best_threshold, f1, folds
from stabilitykit.detectors.drift_probe import FEATURES
from stabilitykit.detectors.intent_drift import INTENT_DRIFT
from stabilitykit.detectors.trace import Instance, compiled_kernel

TITLE = "Topic drift without labels"
WANTED = {"tiage": 0.48, "dialseg711": 0.62, "sgd": 0.46}
K_GRID = (0.25, 0.5, 0.75, 1.0, 1.25)
KERNEL = compiled_kernel(INTENT_DRIFT)
OURS = "drift_probe, learned from joints"
SETTINGS = (
    Rounds(0, strength=0.05),
    Rounds(0, strength=0.01),
    Rounds(2, 0.2, 0.0, strength=0.01),
    Rounds(3, 0.2, 0.0, strength=0.05),
    Rounds(3, 0.2, 0.05, strength=0.05),
    Rounds(3, 0.2, 0.05, strength=0.01),
    Rounds(3, 0.3, 0.1, strength=0.05),
    Rounds(3, 0.3, 0.1, strength=0.01),
)
CHECKS = 4


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


def values_of_settings(dialogues: list[Dialogue]) -> list[float]:
    """Give the F1 of every setting on one set, thresholds from the other folds."""
    made, y, values = joined(dialogues, 300, np.random.default_rng(0)), labels_of(dialogues), []
    for rounds in SETTINGS:
        model = fit_joined(made, dialogues, rounds=rounds).model
        margins = thresholded(dialogues, [logits(model, d) for d in dialogues])
        values.append(f1(y, np.concatenate(margins) > 0))
    return values


def chosen_setting(values: dict[str, list[float]], name: str) -> Rounds:
    """Choose how to fit without the set that is left out: the best mean rank on the others."""
    ranks = [np.argsort(np.argsort(-np.array(v))) for of, v in values.items() if of != name]
    return SETTINGS[int(np.argmin(np.mean(ranks, axis=0)))]


def by_joints(dialogues: list[Dialogue], rounds: Rounds) -> tuple[Arrays, Arrays]:
    """Give logits on dialogues held out, and margins over the model's own threshold."""
    fold, scores = folds(len(dialogues), PARTS), [np.empty(0)] * len(dialogues)
    margins = list(scores)
    for k in range(PARTS):
        model = fit_joints([d for d, f in zip(dialogues, fold, strict=True) if f != k], rounds=rounds).model
        for i in np.flatnonzero(fold == k).tolist():
            scores[i] = logits(model, dialogues[i])
            margins[i] = scores[i] - limit_of(model)
    return scores, margins


def check_of(of: str, dialogues: list[Dialogue], rounds: Rounds) -> Line:
    """Give the mean figures of models that were told joints at random places; one such model is a random direction."""
    lines = []
    for seed in range(CHECKS):

        def fit(kept: list[Dialogue], seed: int = seed) -> Any:
            made = permuted(joined(kept, 300, np.random.default_rng(seed)), seed)
            model = fit_joined(made, kept, rounds=rounds).model
            return lambda d: logits(model, d) - limit_of(model)

        lines.append(line(of, "", "check", dialogues, cross_validated(dialogues, fit)))
    figures = {name: float(np.mean([one.figures[name] for one in lines])) for name in lines[0].figures}
    return Line(of, f"joints at random places, mean of {CHECKS}", "check", figures)


def one_set(of: str, dialogues: list[Dialogue], rounds: Rounds) -> list[Line]:
    nearest = [np.minimum(a, np.r_[9.0, b]) for a, b in ((distances(d), two_before(d)) for d in dialogues)]
    scores, margins = by_joints(dialogues, rounds)
    mixed, fitted = permuted(dialogues), "drift_probe, ten weights fitted to labels"
    return [
        *trivial(of, dialogues),
        line(of, "rule as written, k = 2", "source", dialogues, detected(dialogues, method="source_as_written", k=2.0)),
        line(of, "rule corrected, k = 2", "source", dialogues, detected(dialogues, method="source_corrected", k=2.0)),
        line(of, "prior-regularised", "reference", dialogues, cross_validated(dialogues, fit_prior)),
        line(of, "nearer of two, fixed bound", "reference", dialogues, thresholded(dialogues, nearest)),
        line(of, "shipped defaults", "ours", dialogues, detected(dialogues)),
        line(of, "centred distance to the topic", "ours", dialogues, cross_validated(dialogues, fit_centred)),
        line(of, OURS, "ours", dialogues, thresholded(dialogues, scores)),
        line(of, "the same, threshold without labels", "ours", dialogues, margins),
        check_of(of, dialogues, rounds),
        line(of, fitted, "ours", dialogues, held_out(dialogues, components=False)),
        line(of, "the same without question marks", "ours", dialogues, held_out(unasked(dialogues), components=False)),
        line(of, "ten weights, permuted labels", "check", mixed, held_out(mixed, components=False)),
    ]


def two_before(dialogue: Dialogue) -> Any:
    """Cosine distance to the turn before last, from the third turn on."""
    return 1 - (dialogue.vectors[2:] * dialogue.vectors[:-2]).sum(axis=1)


def run(data: Path) -> Report:
    """Measure every set."""
    lines: list[Line] = []
    notes = list(NOTES)
    sets = {name: load(data, name) for name in SETS}
    values = {name: values_of_settings(dialogues) for name, dialogues in sets.items()}
    reached: dict[str, Line] = {}
    for name, dialogues in sets.items():
        rounds = chosen_setting(values, name)
        lines += one_set(name, dialogues, rounds)
        reached[name] = next(one for one in lines if (one.of, one.method) == (name, OURS))
        verdict = judge("distance", dialogues, [distances(d) for d in dialogues], has_limit=False)
        said = "a rule may rest on it" if verdict.is_borne_out else "`calibrate drift` refuses a rule on it"
        notes.append(
            f"{name}: distance to the turn before, {verdict} (wanted above {SEPARABLE}): {said}. The other sets choose "
            f"{rounds.count} rounds, {rounds.left_out:g} left out, {rounds.relabelled:g} relabelled, inverse penalty "
            f"{rounds.strength:g}."
        )
    targets = [Target(f"{name}: F1", value, reached[name].figures["F1"]) for name, value in WANTED.items()]
    targets.append(Target("crosswoz: AUC", SEPARABLE, reached["crosswoz"].figures["AUC"]))
    return Report(lines, targets, notes)


NOTES = (
    f"`{OURS}` is learned from the training folds' dialogues without their labels: pieces of dialogues are joined, "
    "and the joints are what is learned. Of labels it takes the threshold, from the other folds, as every reference "
    f"here does. `the same, threshold without labels` takes the threshold that {SHARE:g} of the training dialogues' "
    "turns are over, and so no label at all; that share was seen on these sets. Boundaries here differ in number from "
    "set to set, and who knows theirs says `--share`.",
    "How it is fitted (rounds, what is left out and relabelled, penalty) is chosen for each set by the mean rank of F1 "
    "on the three others, from the eight settings of SETTINGS. The length of pieces and how many are joined were not "
    "varied.",
    "DialSeg711 is itself stitched from pieces of other dialogues, as the joints are: its figure says less than the "
    "others.",
    "The check: joints at random places. One model of such labels is a random direction, which may agree with the "
    "length of a message or go against it; so the mean of several.",
    "`drift_probe, ten weights fitted to labels` is no label-free method: its weights and threshold come from the "
    "labels of the training folds. On SGD and CrossWOZ most of its gain is the length of the message: `length of the "
    "message` has nothing else. Lengths are estimated tokens.",
)
