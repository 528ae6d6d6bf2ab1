"""A file that was read: its values, and where in the text each of them stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import attrs

from stabilitykit.errors import Problem
from stabilitykit.rules.files.scalars import CONTROL

__all__ = ["COLUMN_BITS", "Document", "Path", "Shape", "Spot", "locate", "pack_position"]

Path = tuple[str | int, ...]

COLUMN_BITS = 21
_COLUMN_MASK = (1 << COLUMN_BITS) - 1
_SNIPPET = 200
_BREAK = re.compile(r"\r\n|\r|\n")
_TOKEN = {
    '"': re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.|$)|[^\\]"),
    "'": re.compile(r"''|."),
}
_QUOTED = {'"': re.compile(r'"(?:[^"\\]|\\.)*"?'), "'": re.compile(r"'(?:[^']|'')*'?")}
_WORD = re.compile(r"[^\s,\[\]{}]+")
_BLANK = frozenset((" ", "\t", "\n", "\r", "\\n", "\\t", "\\r", "\\ ", "\\x20", "\\x09", "\\x0a", "\\x0A", "\\"))


@attrs.frozen
class Spot:
    """A place in a file: one-based line and column, and how many columns it is wide."""

    line: int
    col: int
    width: int = 1


class Shape:
    """Positions of a container: of itself, of its keys, of its values or their shapes."""

    __slots__ = ("at", "keys", "spots")

    def __init__(self, at: int) -> None:
        self.at = at
        self.keys: list[int] = []
        self.spots: list[int | Shape] = []


def pack_position(line: int, column: int) -> int:
    """Hold a zero-based line and column in one int, which orders like the positions."""
    return line << COLUMN_BITS | column


def locate(position: int) -> tuple[int, int]:
    """Give the one-based line and column of a packed position."""
    return (position >> COLUMN_BITS) + 1, (position & _COLUMN_MASK) + 1


class Document:
    """Values of one file with their positions.

    Parameters
    ----------
    file
        The file as the user named it.
    text
        The whole source.
    root
        Plain dict, list, str, int, float, bool and None; not to be changed.
    spots
        Positions of `root`.

    Attributes
    ----------
    home
        Real folder of the file, and the folder that nothing it names may leave; None for a text without a file.
    """

    def __init__(self, file: str, text: str, root: Any, spots: int | Shape | None) -> None:
        self.file, self.text, self.root = file, text, root
        self.home: tuple[str, str] | None = None
        self._spots: int | Shape = 0 if spots is None else spots
        self._index: dict[int, dict[str, int]] = {}

    @cached_property
    def lines(self) -> list[str]:
        """The source's lines, without line breaks."""
        return _BREAK.split(self.text)

    def mark(self, path: Path, *, key: bool = False) -> Spot:
        """Give the place of a value, or of its key; of a missing value the place of what should hold it."""
        position, value, at_key = self._find(path)
        if key and at_key is not None:
            position, value = at_key, path[-1]
        line, col = locate(position)
        return Spot(line, col, self._width(line, col, value))

    def line(self, path: Path) -> int:
        """Give the line of a value."""
        return locate(self._find(path)[0])[0]

    def spot(self, path: Path, offset: int) -> Spot:
        """Give the place of a character of a text: exact, but for blanks that YAML folded away."""
        position, value, _ = self._find(path)
        line, col = locate(position)
        row = self._row(line)
        first = row[col - 1 : col]
        begin = col - 1 + (first in _QUOTED and first != "")
        if not isinstance(value, str):
            return Spot(line, min(begin + offset, len(row)) + 1)
        if row.startswith(value, begin):
            return Spot(line, begin + min(offset, len(value)) + 1)
        return self._folded(value, offset, self._glyphs(line, begin, first))

    def problem(
        self,
        path: Path,
        code: str,
        message: str,
        *,
        hint: str = "",
        offset: int | None = None,
        width: int | None = None,
        key: bool = False,
    ) -> Problem:
        """Make a located problem of a value, of its key, or of a part of a text from `offset` on."""
        spot = self.mark(path, key=key) if offset is None else self.spot(path, offset)
        return self._problem(spot, code, message, hint, spot.width if width is None else width)

    def problem_at(self, position: int, code: str, message: str, hint: str = "", width: int = 1) -> Problem:
        """Make a problem at a packed position; one behind the end stands at the end."""
        line, col = locate(position)
        if line > len(self.lines):
            line, col = len(self.lines), len(self.lines[-1]) + 1
        return self._problem(Spot(line, col), code, message, hint, width)

    def _problem(self, spot: Spot, code: str, message: str, hint: str, width: int) -> Problem:
        row = self._row(spot.line)
        width = max(1, min(width, len(row) - spot.col + 1))
        # a caret far to the right of a huge line helps nobody
        snippet = CONTROL.sub("\ufffd", row[:_SNIPPET].replace("\t", " ")) if spot.col + width <= _SNIPPET else ""
        return Problem(self.file, spot.line, spot.col, code, message, snippet, width, hint)

    def _row(self, line: int) -> str:
        return self.lines[line - 1] if line <= len(self.lines) else ""

    def _find(self, path: Path) -> tuple[int, Any, int | None]:
        """Walk down as far as the path exists: position, value, position of its key."""
        spots, value, at_key = self._spots, self.root, None
        for step in path:
            if not isinstance(spots, Shape):
                break
            if isinstance(value, dict):
                index = self._keys(spots, value).get(str(step), -1)
            else:
                index = step if isinstance(step, int) and 0 <= step < len(value) else -1
            if index < 0 or index >= len(spots.spots):
                at_key = None
                break
            at_key = spots.keys[index] if isinstance(value, dict) else None
            value = value[step]
            spots = spots.spots[index]
        return (spots.at if isinstance(spots, Shape) else spots), value, at_key

    def _keys(self, shape: Shape, value: dict[str, Any]) -> dict[str, int]:
        index = self._index.get(id(shape))
        if index is None:
            index = self._index[id(shape)] = {key: i for i, key in enumerate(value)}
        return index

    def _width(self, line: int, col: int, value: Any) -> int:
        row = self._row(line)
        first = row[col - 1 : col]
        if isinstance(value, str):
            if first in _QUOTED and (found := _QUOTED[first].match(row, col - 1)):
                return len(found[0])
            if first in ("|", ">"):
                return 1
            return len(value) if row.startswith(value, col - 1) else max(1, len(row.rstrip()) - col + 1)
        if first in ("{", "["):
            return 1
        found = _WORD.match(row, col - 1)
        return max(1, len(found[0].rstrip(":"))) if found else 1

    def _glyphs(self, line: int, begin: int, style: str) -> Iterator[tuple[int, int]]:
        """Give line and column of every character of a scalar that is not blank, in order."""
        if style in ("|", ">"):
            line, begin = line + 1, 0
        token = _TOKEN.get(style)
        for number in range(line, len(self.lines) + 1):
            row = self.lines[number - 1]
            if token is None:
                found = ((i, row[i]) for i in range(begin, len(row)))
            else:
                found = ((m.start(), m[0]) for m in token.finditer(row, begin))
            yield from ((number, i + 1) for i, glyph in found if glyph not in _BLANK)
            begin = 0

    def _folded(self, value: str, offset: int, glyphs: Iterator[tuple[int, int]]) -> Spot:
        """Find a character by counting: folding moves blanks, never the order of the others."""
        spot, seen = next(glyphs, (1, 1)), -1
        for i, char in enumerate(value[: offset + 1]):
            if char in _BLANK:
                continue
            if seen >= 0:
                spot = next(glyphs, spot)
            seen = i
        behind = max(0, offset - seen) if seen >= 0 else 0
        return Spot(spot[0], max(1, min(spot[1] + behind, len(self._row(spot[0])) + 1)))
