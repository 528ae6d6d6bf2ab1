from __future__ import annotations

import json

import numpy as np
import pytest

from stabilitykit.cli.calibrate.dialogues import read_dialogues
from stabilitykit.cli.calibrate.intent import fit_intent, labelled
from stabilitykit.detectors.intent_churn import INTENT_CHURN
from stabilitykit.detectors.trace import trace
from stabilitykit.rules.files.weights import parse_weights
from stabilitykit.signals import Weights


@pytest.mark.capability("issue 3 §1: `calibrate intent` writes a classifier that `intent_churn` runs in the pass")
def test_writes_a_model_that_runs(run, clear, tmp_path):
    """The kernel names the intents that the fitting code does."""
    embeddings, turns = clear
    out = tmp_path / "intent.npz"
    done = run("calibrate", "intent", "--data", embeddings, "--turns", turns, "-o", out)
    assert done.code == 0
    assert "accuracy on dialogues held out" in done.out
    model = parse_weights(out.read_bytes())
    assert isinstance(model, Weights)
    assert list(model.arrays["classes"]) == [f"topic-{k}" for k in range(5)]
    vectors, names, group = labelled(read_dialogues(embeddings, turns))
    fitted = fit_intent(vectors, names, group)
    got = [t["intent"] for t in trace(INTENT_CHURN, [{"input": v} for v in vectors[:60]], {"model": model})]
    assert got == fitted.probabilities(vectors[:60]).argmax(axis=1).tolist()
    assert np.mean(np.array(fitted.classes)[np.array(got, int)] == names[:60]) > 0.8


def test_no_better_than_the_commonest_is_refused(run, chance, tmp_path):
    """Nothing is written when the embedding knows nothing of the intents."""
    out = tmp_path / "intent.npz"
    done = run("calibrate", "intent", "--data", chance[0], "--turns", chance[1], "-o", out, "--json")
    assert (done.code, json.loads(done.out)["written"], out.exists()) == (1, False, False)


def test_two_intents_are_two_rows(clear):
    """Of two classes the logit of one is a row of zeros, so the detector needs no special case."""
    vectors, names, group = labelled(read_dialogues(*clear))
    model = fit_intent(vectors, np.where(names == "topic-0", "a", "b"), group)
    assert model.weights.shape == (2, 12)
    assert model.probabilities(vectors).sum(axis=1) == pytest.approx(np.ones(len(vectors)))


def test_without_intents_it_is_wrong_use(run, clear, tmp_path):
    """Turns without `intent` cannot teach one."""
    bare = tmp_path / "bare.jsonl"
    bare.write_text(clear[1].read_text().replace("intent", "other"), encoding="utf-8")
    done = run("calibrate", "intent", "--data", clear[0], "--turns", bare, "-o", tmp_path / "m.npz")
    assert (done.code, "no turn has an intent" in done.err) == (2, True)
