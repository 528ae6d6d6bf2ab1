from __future__ import annotations

import json

import numpy as np
import pytest

from stabilitykit.cli.calibrate.dialogues import read_dialogues
from stabilitykit.errors import RecordError


def write(folder, turns, **arrays):
    """Write one dialogue of four messages, user and assistant by turns."""
    file = {"E": np.eye(4) * 2, "n_turns": [4], "is_user": [1, 0, 1, 0], "shift": [0, 0, 0, 1], **arrays}
    np.savez(folder / "e.npz", **{k: np.asarray(v) for k, v in file.items() if v is not None})  # type: ignore[arg-type]
    (folder / "t.jsonl").write_text(json.dumps({"turns": turns}) + "\n", encoding="utf-8")
    return folder / "e.npz", folder / "t.jsonl"


TURNS = [{"text": "one two"}, {"tokens": 7}, {"text": "three??"}, {"text": "再见 bye"}]


def test_every_message_or_the_users(tmp_path):
    """With the user's only, what lies between are the answers, and a boundary there belongs to the next message.

    Four tokens of the chat template come with each message; those around the answers are in the growth of the prompt.
    """
    paths = write(tmp_path, TURNS, shift=[0, 1, 0, 0])
    (all_of_it,) = read_dialogues(*paths)
    assert all_of_it.message.tolist() == [6, 11, 7, 7]
    assert all_of_it.shift.tolist() == [0, 1, 0, 0]
    (users,) = read_dialogues(*paths, only_user=True)
    assert (users.message.tolist(), users.answer.tolist(), users.shift.tolist()) == ([6, 11], [0, 7], [0, 1])
    assert (all_of_it.questions.tolist()[:3:2], users.questions.tolist()) == ([0, 2], [0, 2])
    assert np.isnan(all_of_it.questions[1])  # neither text nor a number
    assert users.vectors.tolist() == [[1, 0, 0, 0], [0, 0, 1, 0]]


@pytest.mark.parametrize(
    "arrays",
    [
        {"n_turns": [3]},
        {"E": None},
        {"shift": [0]},
        {"E": np.full((4, 4), np.nan)},
        {"n_turns": [2, 2]},
    ],
)
def test_what_does_not_fit_together_is_refused(tmp_path, arrays):
    """The error names the file, and holds nothing of the texts."""
    with pytest.raises(RecordError, match=r"e\.npz: no dialogues to calibrate on") as caught:
        read_dialogues(*write(tmp_path, TURNS, **arrays))
    assert "three" not in str(caught.value)


@pytest.mark.parametrize("kind", ["drift", "intent"])
@pytest.mark.parametrize("size", [0, 300])
def test_damaged_archive(run, tmp_path, clear, kind, size):
    """An empty file and a cut archive are wrong use, with the file's name."""
    cut = tmp_path / "cut.npz"
    cut.write_bytes(clear[0].read_bytes()[:size])
    ran = run("calibrate", kind, "--data", cut, "--turns", clear[1], "-o", tmp_path / "out.npz")
    assert ran.code == 2
    assert "cut.npz: no dialogues to calibrate on" in ran.err
