"""The page of accuracy is what the kept figures say, and the harness finds its subjects."""

from __future__ import annotations

import json

import pytest

from benchmarks import accuracy


@pytest.mark.capability("issue 6: docs/explanation/accuracy.md is written from measured figures, one table a subject")
def test_the_page_is_written_from_the_kept_figures():
    """Nobody edits a figure by hand."""
    assert accuracy.page(json.loads(accuracy.KEPT.read_text())) == accuracy.PAGE.read_text()


def test_every_kept_subject_can_be_measured_again():
    """A figure whose script is gone would stay for ever."""
    assert set(json.loads(accuracy.KEPT.read_text())) <= set(accuracy.subjects())


def test_an_unknown_subject(tmp_path, capsys):
    """An unknown subject is wrong use."""
    with pytest.raises(SystemExit, match="2"):
        accuracy.main(["no-such-subject", "--data", str(tmp_path)])
    assert "invalid choice" in capsys.readouterr().err
