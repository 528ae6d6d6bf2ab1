"""Intents of real dialogues: what a linear model of the embedding names on dialogues it was not fitted on."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.subjects.intent import judge
from stabilitykit.cli.calibrate.dialogues import read_dialogues
from stabilitykit.cli.calibrate.intent import STRENGTHS, held_out_intents, labelled


@pytest.mark.capability("issue 6: intent: real dialogues held out, beside the commonest intent and permuted labels")
def test_real_intents(shared_data):
    """On 60 dialogues it is right far more often than the commonest intent, and with permuted labels it is not."""
    folder = shared_data / "dialogues"
    found = read_dialogues(folder / "embeddings_minilm_sgd.npz", folder / "sgd.jsonl", only_user=True)
    vectors, names, group = labelled(found[:60])
    mixed = np.random.default_rng(0).permutation(names)
    lines = {
        kind: judge(kind, "ours", of, group, *held_out_intents(vectors, of, group, STRENGTHS[:1]))
        for kind, of in (("ours", names), ("permuted", mixed))
    }
    commonest = np.unique(names, return_counts=True)[1].max() / len(names)
    low, _ = lines["ours"].intervals["accuracy"]
    assert low > commonest + 0.1
    assert lines["permuted"].figures["accuracy"] < commonest + 0.05
    assert lines["ours"].figures["AUC of the entropy for a wrong answer"] > 0.6
