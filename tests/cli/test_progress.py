"""The bar: only for long logs, only where somebody watches."""

from __future__ import annotations

import io

import pytest

from stabilitykit.cli import progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        """Say yes."""
        return True


@pytest.mark.capability("issue 2 §1: a progress bar on long input, on a terminal only")
@pytest.mark.parametrize(
    ("is_terminal", "size", "shown"), [(True, 5000, True), (True, 10, False), (False, 5000, False)]
)
def test_bar(monkeypatch, tmp_path, is_terminal, size, shown):
    """Something is drawn on stderr exactly when it is a terminal and the log is long; stdout gets all results."""
    stream = Terminal() if is_terminal else io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress, "_LONG", 1000)
    monkeypatch.setenv("TERM", "xterm-256color")
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"x" * size)
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    with progress.reading([log]) as advance:
        for _ in range(5):
            advance(size // 5)
            print("a result")
    assert out.getvalue() == "a result\n" * 5
    assert ("replaying" in stream.getvalue()) == shown
