from __future__ import annotations

from pathlib import Path

import pytest

from stabilitykit.cli.probe.files import Names, write
from stabilitykit.errors import UsageError


def test_an_interruption_leaves_no_half_file(tmp_path, monkeypatch):
    """Interrupted in the middle of the second file: the first is whole, the second is the old one, nothing beside."""
    names = Names.of(tmp_path / "probe")
    names.figures.write_text("the old one")
    whole = Path.write_bytes

    def cut(path: Path, content: bytes) -> int:
        if ".json." not in path.name:
            return whole(path, content)
        whole(path, content[:3])
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", cut)
    with pytest.raises(KeyboardInterrupt):
        write(names, ["{}"], {"turns": 1}, "<p>")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "probe.jsonl": "{}\n",
        "probe.json": "the old one",
    }


def test_what_cannot_be_written_is_named(tmp_path):
    """A folder in a file's place is told with its name, and nothing is left beside it."""
    names = Names.of(tmp_path / "probe")
    names.report.mkdir()
    with pytest.raises(UsageError, match=r"--output: .*probe\.html: "):
        write(names, ["{}"], {}, "<p>")
    assert not list(tmp_path.glob("*.part"))
