"""Colour only for those who see it; nothing foreign moves the cursor."""

from __future__ import annotations

import io

import pytest

from stabilitykit.cli import output


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        """Say yes."""
        return True


@pytest.mark.parametrize("hostile", ["\x1b[2J", "a\rb", "x\u202ey", "\x9b31m", "a\nb"])
def test_plain_leaves_nothing_that_acts(hostile):
    """Control and bidi characters are shown, not obeyed."""
    assert output.plain(hostile).isprintable()


def test_plain_keeps_words_of_any_language():
    """Readable text stays as it is."""
    assert output.plain("会话 ä-1") == "会话 ä-1"


@pytest.mark.capability("issue 2 §7: NO_COLOR; plain text when not a terminal")
@pytest.mark.parametrize(
    ("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colour_is_for_terminals(monkeypatch, environment, coloured):
    """A terminal gets colours unless NO_COLOR or TERM=dumb says no."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = Terminal()
    monkeypatch.setattr("sys.stdout", stream)
    output.line(("bad", "bold red"), " rest")
    assert ("\x1b[" in stream.getvalue()) == coloured
    assert "bad" in stream.getvalue()


@pytest.mark.capability("issue 2 §7: NO_COLOR; plain text when not a terminal")
def test_no_colour_in_a_pipe(capsys):
    """What is no terminal gets plain text."""
    output.line(("bad", "bold red"), " rest")
    assert capsys.readouterr().out == "bad rest\n"


def test_table_is_aligned(capsys):
    """Columns are as wide as their widest cell; the last one is not padded."""
    output.table(("a", "b"), [("1", "x"), (("longer", "red"), "y")])
    assert capsys.readouterr().out == "a       b\n1       x\nlonger  y\n"


def test_record_is_strict_json():
    """NaN is no JSON: it must never come out."""
    with pytest.raises(ValueError, match="JSON"):
        output.record({"x": float("nan")})
