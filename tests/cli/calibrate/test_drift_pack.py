from __future__ import annotations

import sys

import attrs
import numpy as np
import pytest
import yaml

from stabilitykit import Engine, Turn
from stabilitykit.cli.calibrate.dialogues import read_dialogues
from stabilitykit.cli.calibrate.drift import fit_drift, held_out, logits
from stabilitykit.cli.calibrate.drift_pack import SEPARABLE, judge
from stabilitykit.detectors.drift_probe import DRIFT_PROBE
from stabilitykit.detectors.trace import trace
from stabilitykit.signals import Weights


@pytest.mark.capability("issue 3 §1: `calibrate drift` writes a model and a pack, and the engine runs both")
def test_writes_a_pack_that_runs(run, clear, tmp_path):
    """The pack loads with its model beside it; on turns of the same kind its rules find new topics."""
    embeddings, turns = clear
    out = tmp_path / "mine.npz"
    done = run("calibrate", "drift", "--data", embeddings, "--turns", turns, "-o", out)
    assert (done.code, done.err) == (0, "")
    assert "refused" not in done.out
    assert out.stat().st_size < 8_000_000
    pack = yaml.safe_load(out.with_suffix(".yaml").read_text())
    assert [r["rule"] for r in pack["rules"]] == ["topic-distance", "topic-probe"]
    assert set(pack["params"]) == {"drift_mu0", "drift_s0", "drift_n0"}
    engine = Engine.load(out.with_suffix(".yaml"))
    dialogue = read_dialogues(embeddings, turns)[0]
    said = [
        {m.rule for m in engine.evaluate(Turn(session_id="s", embedding=v.astype(np.float32))).matches}
        for v in dialogue.vectors
    ]
    found = np.array(["topic-probe" in rules for rules in said[1:]])
    assert (found == dialogue.shift[1:]).mean() > 0.7


@pytest.mark.capability("issue 3 §1: an embedding that does not show boundaries gets no rule, and exit code 1")
def test_an_uninformative_embedding_is_refused(run, chance, tmp_path):
    """The pack holds no rule and says why; it still loads."""
    embeddings, turns = chance
    out = tmp_path / "mine.npz"
    done = run("calibrate", "drift", "--data", embeddings, "--turns", turns, "-o", out, "--no-components")
    assert done.code == 1
    assert done.out.count("refused") == 2
    assert "no ground for a rule" in done.err
    text = out.with_suffix(".yaml").read_text()
    assert text.count("no rule on the") == 2
    assert "rules" not in yaml.safe_load(text)
    assert Engine.load(out.with_suffix(".yaml")).evaluate(Turn(session_id="s")).fired == ()


@pytest.mark.capability(
    "issue 3 §1: the embedding of CrossWOZ is at chance, and `calibrate drift` refuses its distance"
)
def test_crosswoz_is_refused(shared_data):
    """The distance of a multilingual embedding does not show where these dialogues change their topic."""
    file = shared_data / "dialogues" / "embeddings_e5small_crosswoz.npz"
    dialogues = read_dialogues(file, label="shift_user", only_user=True)
    far = [1 - (d.vectors[1:] * d.vectors[:-1]).sum(axis=1) for d in dialogues]
    verdict = judge("distance", dialogues, far, has_limit=False)
    assert not verdict.is_borne_out
    assert verdict.low < SEPARABLE


@pytest.mark.parametrize("components", [True, False])
def test_the_detector_is_what_was_fitted(clear, components):
    """The kernel's probability, turn by turn, is that of the fitting code, lengths of messages included."""
    dialogues = read_dialogues(*clear)
    model = fit_drift(dialogues, components=components, strengths=(0.3,)).model
    weights = Weights("", model)
    for dialogue in dialogues[:5]:
        prompts = np.cumsum(dialogue.message)
        rows = [
            {"input": v.astype(np.float32), "prompt": p, "answer": 0.0, "questions": q}
            for v, p, q in zip(dialogue.vectors, prompts, dialogue.questions, strict=True)
        ]
        got = [t["probability"] for t in trace(DRIFT_PROBE, rows, {"model": weights, "dim": 12})][1:]
        hidden = dialogue.message.copy()
        hidden[0] = np.nan  # of the first prompt nobody knows what the message is
        seen = attrs.evolve(dialogue, message=hidden)
        assert got == pytest.approx(1 / (1 + np.exp(-logits(model, seen))), abs=1e-5)


def test_permuted_labels_are_at_chance(clear):
    """Nothing of the evaluation leaks: with shuffled labels the held-out score knows nothing."""
    dialogues = read_dialogues(*clear)
    rng = np.random.default_rng(1)
    mixed = [attrs.evolve(d, shift=np.r_[0, rng.permutation(d.shift[1:])]) for d in dialogues]
    plain = judge("probe", dialogues, held_out(dialogues, components=False), has_limit=True)
    verdict = judge("probe", mixed, held_out(mixed, components=False), has_limit=True)
    assert plain.auc > 0.8
    assert not verdict.is_borne_out


def test_wrong_use_is_said(run, clear, tmp_path):
    """Another ending, too few dialogues or none at all: exit code 2 and a sentence."""
    embeddings, _ = clear
    for data, out, word in (
        (embeddings, "m.txt", "end in .npz"),
        (tmp_path / "none.npz", "m.npz", "no dialogues to calibrate on"),
    ):
        done = run("calibrate", "drift", "--data", data, "-o", tmp_path / out)
        assert (done.code, word in done.err) == (2, True)


def test_without_the_extra_it_names_it(run, clear, tmp_path, monkeypatch):
    """Without scikit-learn the command says which extra brings it."""
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    done = run("calibrate", "drift", "--data", clear[0], "-o", tmp_path / "m.npz")
    assert done.code == 2
    assert "stabilitykit[calibrate]" in done.err
