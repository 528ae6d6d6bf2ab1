"""The events of a Chrome trace one by one, however long the file is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any

from stabilitykit.errors import RecordError

__all__ = ["MAX_VALUE", "read_events"]

MAX_VALUE = 1 << 20
"""Characters of one event, or of one other value of the file."""
_CHUNK = 1 << 16
_SPACE = " \t\r\n"


def read_events(stream: IO[str], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Give the line and the content of each event.

    Parameters
    ----------
    stream
        ``{"traceEvents": [...], ...}`` or ``[...]``.
    name
        The file, for errors.

    Raises
    ------
    RecordError
        With line and column: no JSON, a value that is too long, or no trace.
    """
    scan = _Scan(stream, name)
    if scan.next() == "[":
        yield from _array(scan)
        return
    scan.expect("{", "a trace is an object or an array")
    found = False
    while scan.next() != "}":
        key = scan.value()
        scan.expect(":", "`:` is missing")
        if key == "traceEvents":
            found = True
            yield from _array(scan)
        else:
            scan.value()
        if scan.next() != "}":
            scan.expect(",", "`,` is missing")
    if not found:
        raise scan.error("no `traceEvents`")


def _array(scan: _Scan) -> Iterator[tuple[int, dict[str, Any]]]:
    scan.expect("[", "`traceEvents` is an array")
    while scan.next() != "]":
        line = scan.line
        event = scan.value()
        if not isinstance(event, dict):
            raise scan.error("an event is an object")
        yield line, event
        if scan.next() != "]":
            scan.expect(",", "`,` is missing")
    scan.expect("]", "")


class _Scan:
    """A window over the text that moves from value to value."""

    def __init__(self, stream: IO[str], name: str) -> None:
        self._stream, self._name = stream, name
        self._text, self._at, self._line, self._column = "", 0, 1, 1
        self._decode = json.JSONDecoder().raw_decode

    @property
    def line(self) -> int:
        """The line of what comes next."""
        return self._line + self._text.count("\n", 0, self._at)

    def error(self, reason: str) -> RecordError:
        """Locate a mistake at what comes next."""
        passed = self._text[: self._at]
        column = len(passed) - passed.rfind("\n") if "\n" in passed else self._column + len(passed)
        return RecordError(f"{self._name}:{self.line}:{column}: {reason}")

    def _more(self) -> bool:
        passed, chunk = self._text[: self._at], self._stream.read(_CHUNK)
        self._line += passed.count("\n")
        self._column = len(passed) - passed.rfind("\n") if "\n" in passed else self._column + len(passed)
        self._text, self._at = self._text[self._at :] + chunk, 0
        return bool(chunk)

    def next(self) -> str:
        """Give the next character that is no space."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                raise self.error("the file ends here")

    def expect(self, mark: str, reason: str) -> None:
        """Go past a mark."""
        if self.next() != mark:
            raise self.error(reason)
        self._at += 1

    def value(self) -> Any:
        """Decode the next value and go past it."""
        self.next()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if len(self._text) - self._at > MAX_VALUE:
                    raise self.error(f"no JSON, or a value of more than {MAX_VALUE >> 20} MiB") from None
                if not self._more():
                    raise self.error(f"no JSON: {getattr(error, 'msg', type(error).__name__)}") from None
                continue
            length = end - self._at
            # A number that ends with the window may go on behind it.
            if end == len(self._text) and self._more():
                continue
            self._at += length
            return value
