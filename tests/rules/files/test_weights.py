from __future__ import annotations

import hashlib
import io
import zipfile

import numpy as np
import pytest

from stabilitykit import Engine, Turn
from stabilitykit.detectors import DETECTORS
from stabilitykit.errors import PackError
from stabilitykit.rules.files.weights import MAX_MODEL_BYTES, parse_weights
from stabilitykit.rules.load import load_pack

PACK = """stabilitykit: 1
pack: mine
extends: [base]
detectors:
  churn: {type: intent_churn, model: %s}
rules:
  - rule: churn
    when: churn.is_churn
"""


def npz(**arrays):
    """Give the bytes of a model file."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


GOOD = npz(weights=np.eye(3, 4, dtype=np.float32) * 9, bias=np.zeros(3), classes=np.array(["a", "b", "c"]))


def problem(folder, path="./m.npz"):
    """Load the pack with this path; gives the only problem."""
    (folder / "mine.yaml").write_text(PACK % path)
    with pytest.raises(PackError) as caught:
        load_pack(folder / "mine.yaml", detectors=DETECTORS)
    (found,) = caught.value.problems
    assert found.code == "SK322"
    return found


@pytest.mark.capability(
    "issue 3 §1: a model file is named in the pack, loaded and checked with it, and reaches the pass"
)
@pytest.mark.parametrize("compiled", [True, False])
def test_a_model_reaches_the_pass(tmp_path, compiled):
    """The pack names it relative to itself; the engine makes the intents' probabilities from the embedding."""
    (tmp_path / "m.npz").write_bytes(GOOD)
    text = (PACK % "./m.npz").replace("churn.is_churn", "churn.intent == 2 and churn.entropy_ratio < 50 %")
    (tmp_path / "mine.yaml").write_text(text)
    engine = Engine.load(tmp_path / "mine.yaml", compiled=compiled)
    third, first = np.eye(4, dtype=np.float32)[[2, 0]]
    assert [m.rule for m in engine.evaluate(Turn(session_id="s", embedding=third)).matches] == ["churn"]
    assert engine.evaluate(Turn(session_id="s", embedding=first)).matches == ()


def test_another_model_is_another_pack(tmp_path):
    """Fingerprint and memory's name know the bytes of the file, not its path."""
    (tmp_path / "m.npz").write_bytes(GOOD)
    (tmp_path / "copy.npz").write_bytes(GOOD)
    packs = []
    for path in ("./m.npz", "./copy.npz"):
        (tmp_path / "mine.yaml").write_text(PACK % path)
        packs.append(load_pack(tmp_path / "mine.yaml", detectors=DETECTORS))
    (tmp_path / "m.npz").write_bytes(npz(weights=np.eye(3, 4), bias=np.ones(3)))
    (tmp_path / "mine.yaml").write_text(PACK % "./m.npz")
    packs.append(load_pack(tmp_path / "mine.yaml", detectors=DETECTORS))
    assert packs[0].fingerprint == packs[1].fingerprint != packs[2].fingerprint
    assert packs[0].detectors[0].memory == packs[1].detectors[0].memory != packs[2].detectors[0].memory
    assert hashlib.sha256(GOOD).hexdigest() in packs[0].detectors[0].memory


@pytest.mark.capability("issue 3 §1: a model file outside the root of its pack is refused")
def test_outside_the_root_is_refused(tmp_path):
    """Up, absolute, or by a link: the real path must stay under the pack's folder."""
    folder = tmp_path / "packs"
    folder.mkdir()
    (tmp_path / "m.npz").write_bytes(GOOD)
    (folder / "link.npz").symlink_to(tmp_path / "m.npz")
    assert "leaves the folder" in problem(folder, "../m.npz").message
    assert "leaves the folder" in problem(folder, "./link.npz").message
    assert "relative" in problem(folder, tmp_path / "m.npz").message


def test_what_cannot_be_read_is_located(tmp_path):
    """No file, a folder, another ending: at the path in the pack."""
    (tmp_path / "d.npz").mkdir()
    missing = problem(tmp_path)
    assert (missing.line, missing.col) == (5, 38)
    assert "cannot be read" in missing.message
    assert "not a regular file" in problem(tmp_path, "./d.npz").message
    assert "relative to this file" in problem(tmp_path, "./m.txt").message
    assert "relative to this file" in problem(tmp_path, "3").message


def test_a_model_of_another_detector_is_refused(tmp_path):
    """The arrays must be those that the detector needs."""
    (tmp_path / "m.npz").write_bytes(npz(centre=np.zeros(3)))
    assert "needs `weights`" in problem(tmp_path).message


@pytest.mark.capability(
    "issue 3 §1: a model file over 8 MB, with objects or with numbers that are not finite is refused"
)
@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (b"", "no .npz file"),
        (GOOD[:-40], "no .npz file"),
        (npz(a=np.array([1.0, np.nan])), "not finite"),
        (npz(a=np.array([1 + 2j])), "neither numbers nor text"),
        (b"x" * (MAX_MODEL_BYTES + 1), "is over"),
    ],
)
def test_bad_contents(content, wrong):
    """Each is said in one sentence, none raises."""
    assert wrong in str(parse_weights(content))


def test_pickled_objects_are_never_loaded():
    """An array of objects runs code when it is loaded."""
    file = io.BytesIO()
    np.savez(file, a=np.array([{}], dtype=object))
    assert "no .npz file" in str(parse_weights(file.getvalue()))


def test_a_bomb_is_refused_before_it_is_unpacked():
    """A small file that unpacks to gigabytes is judged by the sizes that it states."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("a.npy", b"\0" * (MAX_MODEL_BYTES + 1))
    assert len(file.getvalue()) < 100_000
    assert "unpacks to over" in str(parse_weights(file.getvalue()))
