"""Strict, bounded YAML for pack files, with the position of every value.

The only module that knows YAML. It builds on the events of libyaml and refuses, with its
place, whatever two YAML readers may read differently: anchors, aliases, tags, merge keys,
duplicate keys, several documents, ambiguous plain scalars, invisible characters.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import attrs
import yaml  # type: ignore[import-untyped,unused-ignore]
from yaml.events import (  # type: ignore[import-untyped,unused-ignore]
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from stabilitykit.errors import PackError, Problem
from stabilitykit.rules.files.document import COLUMN_BITS, Document, Path, Shape, Spot, locate, pack_position
from stabilitykit.rules.files.scalars import CONTROL, SAFE_FIRST, ScalarError, plain_key, plain_value, show

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_NODES", "MAX_SCALAR", "Document", "Mark", "Path", "read"]

Mark = Spot

MAX_BYTES = 1 << 20
MAX_DEPTH = 32
MAX_NODES = 100_000
MAX_SCALAR = 16 * 1024
_MAX_PROBLEMS = 50

_SYNTAX_HINTS = {
    "mapping values are not allowed": "quote a text that contains `: `",
    "a tab character": "indent with spaces",
    "cannot start any token": "indent with spaces, and quote a text that begins with a special character",
    "did not find expected ',' or": "quote a text that contains `, [ ] { }` inside `{...}` or `[...]`",
    "could not find expected ':'": "a key is followed by `: `",
    "did not find expected key": "is the line indented like its neighbours?",
}


class _Stop(Exception):
    """Reading goes no further."""


@attrs.define(eq=False)
class _Open:
    """A container that is being read."""

    value: Any
    shape: Shape
    spots: list[int | Shape]
    is_map: bool
    key: str | None = None

    def add(self, value: Any, spot: int | Shape) -> None:
        """Take the next value."""
        if self.key is not None:
            self.value[self.key] = value
            self.key = None
        else:
            self.value.append(value)
        self.spots.append(spot)


class _Reading:
    """One pass over the events of one file."""

    def __init__(self, text: str, source: bytes, file: str) -> None:
        self.text, self.source, self.file = text, source, file
        self.problems: list[tuple[int, str, str, str, int]] = []
        self.root: Any = None
        self.root_spot: int | Shape | None = None
        self.open: list[_Open] = []
        self.top: _Open | None = None
        self.nodes = 0

    def report(self, at: int, code: str, message: str, hint: str = "", width: int = 1) -> None:
        self.problems.append((at, code, message, hint, width))
        if len(self.problems) >= _MAX_PROBLEMS:
            raise _Stop

    def stop(self, at: int, code: str, message: str, hint: str = "") -> None:
        self.report(at, code, message, hint)
        raise _Stop

    def run(self) -> None:
        """Read to the end, or to the first thing that stops reading."""
        parser = _parser(self.source)
        try:
            self._events(parser.get_event)
        except _Stop:
            pass
        except yaml.MarkedYAMLError as error:
            self._syntax(error)
        except (yaml.YAMLError, RecursionError) as error:
            self.problems.append((0, "SK101", f"not valid YAML: {type(error).__name__}", "", 1))
        finally:
            parser.dispose()

    def _syntax(self, error: Any) -> None:
        mark = error.problem_mark or error.context_mark
        at = pack_position(mark.line, mark.column) if mark is not None else 0
        said = str(error.problem or error.context or "not valid YAML")
        if "tag" in said or "%TAG" in said:
            self.problems.append((at, "SK104", "tags are not allowed", "", 1))
            return
        hint = next((h for part, h in _SYNTAX_HINTS.items() if part in said), "")
        where = f" ({error.context})" if error.problem and error.context else ""
        self.problems.append((at, "SK101", f"not valid YAML: {said}{where}", hint, 1))

    def _events(self, get_event: Callable[[], Any]) -> None:
        documents = 0
        while True:
            event = get_event()
            kind = type(event)
            if kind is ScalarEvent:
                self._scalar(event)
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                self._start(event, kind is MappingStartEvent)
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                self.open.pop()
                self.top = self.open[-1] if self.open else None
            elif kind is AliasEvent:
                self._alias(event)
            elif kind is DocumentStartEvent:
                documents += 1
                self._document(event, documents)
            elif kind is StreamEndEvent:
                return

    def _document(self, event: Any, number: int) -> None:
        at = _at(event)
        if number > 1:
            self.stop(at, "SK104", "a second document: a file holds one")
        if event.tags:
            self.report(at, "SK104", "%TAG directives are not allowed")

    def _count(self, at: int) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self._too_many(at)

    def _too_many(self, at: int) -> None:
        self.stop(at, "SK107", f"more than {MAX_NODES:,} values")

    def _marks(self, event: Any, at: int) -> None:
        """Refuse anchor and tag of a node (a lone ``!`` too)."""
        if event.anchor is not None:
            self.report(
                at, "SK104", f"anchors are not allowed: &{show(event.anchor)[1:-1]}", width=len(event.anchor) + 1
            )
        if event.tag is not None:
            self.report(at, "SK104", f"tags are not allowed: {show(event.tag)[1:-1]}")

    def _alias(self, event: Any) -> None:
        at = _at(event)
        self._count(at)
        self.report(at, "SK104", f"aliases are not allowed: *{show(event.anchor)[1:-1]}", width=len(event.anchor) + 1)
        top = self.top
        if top is None or not top.is_map or top.key is not None:
            if top is not None:
                top.add(None, at)
            return
        top.key = f"*{event.anchor}"

    def _scalar(self, event: Any) -> None:
        # one call a scalar: this is where the time of reading goes
        mark = event.start_mark
        at = mark.line << COLUMN_BITS | mark.column
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self._too_many(at)
        if event.anchor is not None or event.tag is not None:
            self._marks(event, at)
        text = event.value
        if len(text) > MAX_SCALAR // 4 and len(text.encode("utf-8", "replace")) > MAX_SCALAR:
            self.report(at, "SK107", f"a text of more than {MAX_SCALAR // 1024} KiB")
        top = self.top
        is_safe = text[:1] in SAFE_FIRST and event.implicit[0]
        if top is None:
            self.root, self.root_spot = text if is_safe else self._value(event, text, at), at
        elif top.key is not None:
            top.value[top.key] = text if is_safe else self._value(event, text, at)
            top.key = None
            top.spots.append(at)
        elif not top.is_map:
            top.value.append(text if is_safe else self._value(event, text, at))
            top.spots.append(at)
        elif is_safe and text not in top.value:
            top.value[text] = None
            top.shape.keys.append(at)
            top.key = text
        else:
            self._key(event, text, at, top)

    def _value(self, event: Any, text: str, at: int) -> Any:
        if event.implicit[0]:
            return self._checked(plain_value, text, at)
        if event.style == '"' and (found := CONTROL.search(text)):
            self.report(at, "SK102", f"control or bidi character U+{ord(found[0]):04X} behind an escape")
        return text

    def _key(self, event: Any, text: str, at: int, top: _Open) -> None:
        if not event.implicit[0]:
            self._value(event, text, at)
        else:
            self._checked(plain_key, text, at)
        if text in top.value:
            line, _ = locate(top.shape.keys[list(top.value).index(text)])
            self.report(at, "SK103", f"duplicate key {show(text)}, first in line {line}", "", len(text))
        else:
            top.value[text] = None
            top.shape.keys.append(at)
        top.key = text

    def _checked(self, resolve: Callable[[str], Any], text: str, at: int) -> Any:
        try:
            return resolve(text)
        except ScalarError as error:
            self.report(at, error.code, error.message, error.hint, len(text))
            return None

    def _start(self, event: Any, is_map: bool) -> None:
        at = _at(event)
        self._count(at)
        if event.anchor is not None or event.tag is not None:
            self._marks(event, at)
        if len(self.open) >= MAX_DEPTH:
            self.stop(at, "SK107", f"nested more than {MAX_DEPTH} levels deep")
        value: Any = {} if is_map else []
        shape = Shape(at)
        top = self.top
        if top is None:
            self.root, self.root_spot = value, shape
        else:
            if top.is_map and top.key is None:
                self.stop(at, "SK203", "a key must be text", "quote a text that begins with `{` or `[`")
            top.add(value, shape)
        self.top = _Open(value, shape, shape.spots, is_map)
        self.open.append(self.top)


def _at(event: Any) -> int:
    mark = event.start_mark
    return pack_position(mark.line, mark.column)


def _parser(source: bytes) -> Any:
    """Give libyaml's parser, or the pure Python one (slower, same events) where PyYAML lacks it."""
    loader = getattr(yaml, "CSafeLoader", None) or yaml.SafeLoader
    return loader(source)


def _decode(source: bytes, file: str) -> str:
    if len(source) > MAX_BYTES:
        raise PackError([Problem(file, 1, 1, "SK107", f"the file is greater than {MAX_BYTES >> 20} MiB")])
    if source[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in source[:4]:
        raise PackError([Problem(file, 1, 1, "SK102", "not UTF-8: this looks like UTF-16 or UTF-32")])
    text = source.decode("utf-8", "replace")
    if source[:3] == b"\xef\xbb\xbf":
        raise PackError([_hidden(text, file, 0, "a byte order mark", "save the file without BOM")])
    try:
        source.decode("utf-8")
    except UnicodeDecodeError as error:
        at = len(source[: error.start].decode("utf-8"))
        found = f"not UTF-8: byte 0x{source[error.start]:02X}"
        raise PackError([_hidden(text, file, at, found, "save the file as UTF-8")]) from None
    hidden = list(islice(CONTROL.finditer(text), _MAX_PROBLEMS))
    if hidden:
        raise PackError(
            [_hidden(text, file, m.start(), f"control or bidi character U+{ord(m[0]):04X}") for m in hidden]
        )
    return text


def _hidden(text: str, file: str, at: int, message: str, hint: str = "") -> Problem:
    """Report a character that a reader of the file would not see, or not as it was meant."""
    line = text.count("\n", 0, at)
    column = at - text.rfind("\n", 0, at) - 1
    return Document(file, text, None, None).problem_at(pack_position(line, column), "SK102", message, hint)


def read(source: bytes, file: str) -> Document:
    """Read one file.

    Parameters
    ----------
    source
        The bytes of the file: UTF-8, at most 1 MiB.
    file
        Its name for messages.

    Returns
    -------
    Document
        Plain dict, list, str, int, float, bool and None under ``root``; keys are str.

    Raises
    ------
    PackError
        SK101 to SK107, and SK203 for a key that is no scalar: all that were found, at most 50.
    """
    reading = _Reading(_decode(source, file), source, file)
    reading.run()
    document = Document(file, reading.text, reading.root, reading.root_spot)
    if reading.root_spot is None and not reading.problems:
        reading.problems.append((0, "SK101", "the file is empty", "", 1))
    if reading.problems:
        raise PackError([document.problem_at(*found) for found in sorted(set(reading.problems))])
    return document
