"""What a command prints: results on stdout, everything else on stderr, colour only where it is seen."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import IO, Any

__all__ = ["Interrupted", "Part", "ReaderGone", "error", "fail", "flush", "line", "note", "plain", "record", "table"]

Part = str | tuple[str, str]
"""A piece of a line: text, or text and its style."""


class ReaderGone(Exception):
    """Nobody reads what we print any more (``| head``). No OSError: typer would end the process on one."""


class Interrupted(Exception):
    """Ctrl-C, after which what there was has been written; the text says how far it went."""


SEVERITY_STYLES = {"info": "cyan", "warning": "yellow", "critical": "bold red"}


def plain(value: object) -> str:
    """Make foreign text safe for a terminal: nothing in it can move the cursor or hide a word."""
    text = str(value)
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def is_coloured(stream: IO[str]) -> bool:
    """Tell whether a stream shows colours: a terminal, and NO_COLOR is not set."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


def _write(stream: IO[str] | None, parts: Sequence[Part]) -> None:
    if stream is None:  # closed before we began (`>&-`)
        return
    try:
        if is_coloured(stream):
            _write_coloured(stream, parts)
        else:
            stream.write("".join(p if isinstance(p, str) else p[0] for p in parts) + "\n")
    except BrokenPipeError:
        raise ReaderGone from None


def _write_coloured(stream: IO[str], parts: Sequence[Part]) -> None:
    from rich.console import Console
    from rich.text import Text

    Console(file=stream, highlight=False).print(Text.assemble(*parts), soft_wrap=True)


def line(*parts: Part) -> None:
    """Print one line of the result."""
    _write(sys.stdout, parts)


def note(*parts: Part) -> None:
    """Print one line beside the result."""
    flush()
    _write(sys.stderr, parts)


def flush() -> None:
    """Send off what was printed."""
    stream: IO[str] | None = sys.stdout
    try:
        if stream is not None:
            stream.flush()
    except BrokenPipeError:
        raise ReaderGone from None


def error(message: object, *, is_flushed: bool = True) -> None:
    """Print what is wrong; with ``is_flushed`` behind all that was printed before, where that can be written."""
    if is_flushed:
        flush()
    _write(sys.stderr, [("stabilitykit: ", "bold red"), "\n".join(plain(text) for text in str(message).split("\n"))])


def fail(code: int) -> None:
    """End the command with this exit code."""
    import typer

    raise typer.Exit(code)


def record(value: Any) -> None:
    """Print one JSON value on one line."""
    _write(sys.stdout, [json.dumps(value, allow_nan=False)])


def table(headers: Sequence[str], rows: Iterable[Sequence[Part]]) -> None:
    """Print rows in columns; the last column may be as long as it likes."""
    texts = [[cell if isinstance(cell, tuple) else (cell, "") for cell in row] for row in rows]
    widths = [max([len(h), *(len(row[k][0]) for row in texts)]) for k, h in enumerate(headers)]
    widths[-1:] = [0]
    line(*_padded([(h, "bold") for h in headers], widths))
    for row in texts:
        line(*_padded(row, widths))


def _padded(cells: Sequence[tuple[str, str]], widths: Sequence[int]) -> list[Part]:
    parts: list[Part] = []
    for (text, style), width in zip(cells, widths, strict=True):
        parts += [(text, style), " " * (width - len(text) + 2) if width else ""]
    return parts
