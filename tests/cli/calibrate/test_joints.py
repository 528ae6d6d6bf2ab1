from __future__ import annotations

import attrs
import numpy as np
import pytest
import yaml

from stabilitykit import Engine
from stabilitykit.cli.calibrate.dialogues import Dialogue, read_dialogues
from stabilitykit.cli.calibrate.drift import labels_of, limit_of, logits
from stabilitykit.cli.calibrate.joints import Rounds, fit_joined, fit_joints, held_out_joints, joined
from stabilitykit.cli.calibrate.scoring import auc, f1, folds
from stabilitykit.mitigations.context.tokens import MESSAGE_TOKENS


def numbered(count=30, turns=9):
    """Dialogues whose vectors, messages and answers say which dialogue and which turn they are."""
    at = np.arange(turns, dtype=float)
    return [
        Dialogue(np.column_stack([np.full(turns, k), at]), np.ones(turns, np.int64), 100 + at, at, 1000.0 * k + at)
        for k in range(count)
    ]


def test_joints_are_where_another_dialogue_begins():
    """Boundaries are the first turns of the dialogues put behind, and no other; the labels are not looked at."""
    for made in joined(numbered(), 50, np.random.default_rng(0)):
        whose, turn = made.vectors.T
        begins = np.flatnonzero(made.shift)
        assert 1 <= len(begins) <= 3
        assert (turn[begins] == 0).all()
        others = np.setdiff1d(np.arange(1, len(turn)), begins)
        assert (whose[others] == whose[others - 1]).all()
        assert (turn[others] == turn[others - 1] + 1).all()
        assert made.questions.tolist() == (1000 * whose + turn).tolist()


def test_a_joint_is_not_told_by_the_missing_answer():
    """At a joint the answer is the one that the piece before got, unknown at the end; elsewhere nothing changes."""
    made = joined(numbered(), 50, np.random.default_rng(0))
    for d in made:
        turn = d.vectors[:, 1]
        for at in range(1, len(turn)):
            follows = turn[at - 1] + 1 if turn[at - 1] < 8 else np.nan
            assert d.answer[at] == pytest.approx(follows if d.shift[at] else turn[at], nan_ok=True)
            assert d.message[at] == 100 + turn[at] + MESSAGE_TOKENS * d.shift[at]
    assert any(np.isnan(d.answer).any() for d in made)


def test_without_answers_the_message_stays():
    """Where every message is a turn there is no answer between, and nothing is added."""
    plain = [attrs.evolve(d, answer=np.zeros(len(d.shift))) for d in numbered()]
    for d in joined(plain, 20, np.random.default_rng(1)):
        assert (d.message == 100 + d.vectors[:, 1]).all()


def test_labels_are_not_looked_at(clear):
    """With other labels, or none, the same model comes out; and with the same seed."""
    dialogues = read_dialogues(*clear)
    blank = [attrs.evolve(d, shift=np.zeros_like(d.shift)) for d in dialogues]
    one, other = fit_joints(dialogues).model, fit_joints(blank).model
    assert all((one[key] == other[key]).all() for key in one)


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_the_share_is_that_of_the_own_turns(clear, share):
    """So many of the host's own turns are over the threshold."""
    dialogues = read_dialogues(*clear)
    model = fit_joints(dialogues, share=share, rounds=Rounds(count=0)).model
    found = np.concatenate([logits(model, d) for d in dialogues]) > limit_of(model)
    assert found.mean() == pytest.approx(share, abs=0.01)


def held_out_by(dialogues, fit):
    """Give the labels of one fold, and the scores of a model of the others."""
    fold = folds(len(dialogues), 2)
    kept = [d for d, f in zip(dialogues, fold, strict=True) if f]
    rest = [d for d, f in zip(dialogues, fold, strict=True) if not f]
    model = fit(kept)
    return labels_of(rest), np.concatenate([logits(model, d) for d in rest]), limit_of(model)


@pytest.mark.capability("issue 6: drift learned without a label finds the next task in dialogues held out, F1 .46")
def test_the_next_task_without_labels(shared_data):
    """Real dialogues: neither the model nor its threshold saw a label, and the rounds help."""
    folder = shared_data / "dialogues"
    file = folder / "embeddings_minilm_sgd.npz"
    tasks = read_dialogues(file, folder / "sgd.jsonl", label="shift_user", only_user=True)
    labels, scores, limit = held_out_by(tasks, lambda kept: fit_joints(kept).model)
    assert f1(labels, scores > limit) >= 0.46
    _, once, _ = held_out_by(tasks, lambda kept: fit_joints(kept, rounds=Rounds(count=0)).model)
    assert auc(labels, scores) > auc(labels, once) + 0.01


@pytest.mark.capability("issue 6: drift learned from joints at random places is at chance")
def test_joints_at_random_places_are_at_chance(clear):
    """Without the places of the joints nothing is learned: the mean of several such first fits is at chance.

    Rounds after it look for a rare kind of turn, and in these dialogues nothing but a new topic is one.
    """
    dialogues = read_dialogues(*clear)

    def fit(kept, seed):
        rng = np.random.default_rng(seed)
        made = joined(kept, 300, rng)
        mixed = np.split(rng.permutation(labels_of(made)), np.cumsum([len(d.shift) - 1 for d in made])[:-1])
        made = [attrs.evolve(d, shift=np.r_[0, y]) for d, y in zip(made, mixed, strict=True)]
        return fit_joined(made, kept, rounds=Rounds(count=0)).model

    areas = [auc(*held_out_by(dialogues, lambda kept, k=k: fit(kept, k))[:2]) for k in range(32)]
    assert 0.42 < np.mean(areas) < 0.58
    assert auc(*held_out_by(dialogues, lambda kept: fit_joints(kept).model)[:2]) > 0.75


def test_held_out_joints_are_of_dialogues_unseen():
    """Every joined dialogue has scores, one for each turn but the first."""
    rng = np.random.default_rng(0)
    dialogues = [attrs.evolve(d, vectors=rng.normal(size=(9, 4))) for d in numbered()]
    made, scores = held_out_joints(dialogues)
    assert len(made) == len(dialogues)
    assert [len(s) for s in scores] == [len(d.shift) - 1 for d in made]


@pytest.mark.capability(
    "issue 3 §1: `calibrate drift` without labels writes a model and a pack, and the engine runs both"
)
@pytest.mark.parametrize("options", [("--without-labels",), ("--without-labels", "--no-components", "--share", "0.3")])
def test_writes_a_pack_without_labels(run, clear, tmp_path, options):
    """Output and pack say what the model was learned from, and on what it was judged."""
    out = tmp_path / "mine.npz"
    done = run("calibrate", "drift", "--data", clear[0], "--turns", clear[1], "-o", out, *options)
    assert (done.code, done.err) == (0, "")
    assert "on joints of dialogues held out" in done.out
    assert "learned from joints of dialogues without labels" in done.out
    text = out.with_suffix(".yaml").read_text()
    assert "On joints of dialogues held out:" in text
    assert "without labels" in yaml.safe_load(text)["desc"]
    Engine.load(out.with_suffix(".yaml"))


def test_a_file_without_the_array_has_no_labels(run, clear, tmp_path):
    """It gives the model that `--without-labels` gives."""
    with np.load(clear[0]) as file:
        np.savez(tmp_path / "bare.npz", **{k: file[k] for k in ("E", "n_turns")})
    for name, data, options in (("a", tmp_path / "bare.npz", ()), ("b", clear[0], ("--without-labels",))):
        run("calibrate", "drift", "--data", data, "-o", tmp_path / f"{name}.npz", *options)
    with np.load(tmp_path / "a.npz") as one, np.load(tmp_path / "b.npz") as other:
        assert all((one[key] == other[key]).all() for key in other.files)


@pytest.mark.capability("issue 3 §1: without labels too, an embedding that does not show boundaries gets no rule")
def test_an_uninformative_embedding_is_refused(run, chance, tmp_path):
    """Joints of random vectors are not found either; the pack holds no rule."""
    out = tmp_path / "mine.npz"
    done = run("calibrate", "drift", "--data", chance[0], "--turns", chance[1], "-o", out, "--without-labels")
    assert (done.code, done.out.count("refused")) == (1, 2)
    assert "rules" not in yaml.safe_load(out.with_suffix(".yaml").read_text())


@pytest.mark.capability("issue 3 §1: without labels too, the distance of CrossWOZ is refused")
def test_crosswoz_is_refused_without_labels(run, shared_data, tmp_path):
    """The distance of its embedding shows joints no better than it shows where the topic changes."""
    file, out = shared_data / "dialogues" / "embeddings_e5small_crosswoz.npz", tmp_path / "mine.npz"
    done = run("calibrate", "drift", "--data", file, "-o", out, "--only-user", "--without-labels", "--no-components")
    assert done.code == 1
    assert "topic-distance" not in out.with_suffix(".yaml").read_text()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--share", "0.2"), "--without-labels"),
        (("--without-labels", "--by-dialogue"), "needs labels"),
        (("--label", "shfit"), "no boundary in 'shfit'"),
    ],
)
def test_options_that_would_do_nothing_are_refused(run, clear, tmp_path, options, word):
    """An option of the other way, and a label that is not there: exit code 2 and a sentence."""
    done = run("calibrate", "drift", "--data", clear[0], "-o", tmp_path / "m.npz", *options)
    assert (done.code, word in done.err) == (2, True)
