"""Intents of the user's messages by the linear model that `intent_churn` runs, and what its entropy is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.subjects.dialogue_sets import intervals_of
from benchmarks.subjects.report import Line, Report
from stabilitykit.cli.calibrate.dialogues import read_dialogues
from stabilitykit.cli.calibrate.intent import STRENGTHS, held_out_intents, labelled
from stabilitykit.cli.calibrate.scoring import auc

TITLE = "Intents: a linear model of the embedding"
LIMIT = 0.912
"""The default of `intent_churn`."""


def judge(method: str, kind: str, names: np.ndarray, group: np.ndarray, found: np.ndarray, ratio: np.ndarray) -> Line:
    """Accuracy, and whether the entropy tells wrong answers from right ones."""
    members = [np.flatnonzero(group == k) for k in np.unique(group)]
    right = found == names
    names_of = ("accuracy", "AUC of the entropy for a wrong answer", "unclear turns")

    def measure(drawn: Any) -> tuple[float, ...]:
        i = np.concatenate([members[k] for k in drawn])
        doubt = auc((~right[i]).astype(np.int64), ratio[i])
        return float(right[i].mean()), doubt, float((ratio[i] > LIMIT).mean())

    figures = dict(zip(names_of, measure(range(len(members))), strict=True))
    return Line("sgd", method, kind, figures, dict(zip(names_of, intervals_of(measure, len(members)), strict=True)))


def run(data: Path) -> Report:
    """Measure on the user's messages of the Schema-Guided Dialogue sample."""
    folder = data / "dialogues"
    dialogues = read_dialogues(folder / "embeddings_minilm_sgd.npz", folder / "sgd.jsonl", only_user=True)
    vectors, names, group = labelled(dialogues)
    common = np.unique(names)[np.argmax(np.unique(names, return_counts=True)[1])]
    found, ratio = held_out_intents(vectors, names, group)
    mixed = np.random.default_rng(0).permutation(names)
    guessed, doubt = held_out_intents(vectors, mixed, group, STRENGTHS[:1])
    level = np.zeros(len(names))
    lines = [
        judge("commonest intent", "trivial", names, group, np.full_like(names, common), level),
        judge("linear model", "ours", names, group, found, ratio),
        judge("permuted labels", "check", mixed, group, guessed, doubt),
    ]
    return Report(lines, (), NOTES)


NOTES = (
    "The source document takes intents as given: it bounds their entropy and counts their switches, and names no "
    "classifier, nor do the reference pages. So there are no lines of theirs.",
    "Many messages do not name their intent (`yes, please`): a classifier that sees one message cannot know it, and is "
    "unsure of it. Hardly any turn is above the bound that the source means by 2.1 nats of ten classes (`unclear "
    "turns`): with a model like this set `limit` from its own entropies.",
)
