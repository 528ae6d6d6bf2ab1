"""Lines of an exposition page: only the wanted metrics, bounded in every direction, bad lines located."""

from __future__ import annotations

import io
import math
import re
import zlib
from collections.abc import Collection, Iterator
from http.client import HTTPException
from typing import IO

import attrs

from stabilitykit.errors import MissingExtra

__all__ = ["MAX_BYTES", "MAX_LINE", "MAX_WANTED", "Page", "PageProblem", "Problems", "Series", "wanted_series"]

Page = str | bytes | IO[bytes]
"""A page: text, bytes, or a binary stream, which is read to its end or to the bound."""

MAX_BYTES = 16 << 20
"""Bytes of a page that are read; a server's own are below 1 MiB."""
MAX_LINE = 4 << 10
"""Bytes of one line."""
MAX_WANTED = 1 << 20
"""Bytes of wanted metrics that are read on one page: the parser takes its time over hostile ones."""
_KEPT = 20
_NAME = re.compile(rb"\s*([A-Za-z_:][A-Za-z0-9_:]*)")


@attrs.frozen
class PageProblem:
    """What could not be used of a page; line 0 is the page as a whole."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}" if self.line else self.reason


class Problems:
    """Counts the problems of one page and keeps the first of them.

    Attributes
    ----------
    count, first
        All of them, and those that are kept.
    """

    def __init__(self) -> None:
        self.count = 0
        self.first: list[PageProblem] = []

    def add(self, line: int, reason: str) -> None:
        """Note one."""
        self.count += 1
        if len(self.first) < _KEPT:
            self.first.append(PageProblem(line, reason))


@attrs.frozen(eq=False)
class Series:
    """One line that was wanted."""

    line: int
    name: str
    labels: dict[str, str]
    value: float


def wanted_series(page: Page, wanted: Collection[bytes], problems: Problems) -> Iterator[Series]:
    """Read the series of some metrics.

    Parameters
    ----------
    page
        The page.
    wanted
        Names of metrics as they stand on pages.
    problems
        Where bad lines are noted; nothing is raised for them.

    Raises
    ------
    MissingExtra
        Without prometheus_client, whose parser reads a line.
    """
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    left = MAX_WANTED
    for number, line in _lines(page, problems):
        named = _NAME.match(line)
        if named is None or named[1] not in wanted:
            continue
        left -= len(line)
        if left < 0:
            problems.add(number, f"more than {MAX_WANTED >> 10} KiB of series: the rest of the page is not read")
            return
        series = _parsed(number, named[1].decode(), line, problems)
        if series is None:
            continue
        key = (series.name, tuple(sorted(series.labels.items())))
        if key in seen:
            problems.add(number, f"{series.name}: this series stood on an earlier line")
            continue
        seen.add(key)
        yield series


def _lines(page: Page, problems: Problems) -> Iterator[tuple[int, bytes]]:
    if isinstance(page, str):
        page = page.encode("utf-8", "surrogatepass")
    stream = io.BytesIO(page) if isinstance(page, bytes) else page
    left, number, is_rest = MAX_BYTES, 0, False
    while True:
        try:
            line = stream.readline(min(MAX_LINE + 1, max(1, left)))
        except (OSError, EOFError, HTTPException, ValueError, zlib.error) as error:  # broken, closed, damaged
            problems.add(number + 1, f"the page cannot be read from here on: {type(error).__name__}")
            return
        if not line:
            return
        if left <= 0:
            problems.add(number, f"more than {MAX_BYTES >> 20} MiB: the rest of the page is not read")
            return
        left -= len(line)
        number += not is_rest
        is_whole = line.endswith(b"\n")
        if is_rest:
            is_rest = not is_whole
        elif len(line) > MAX_LINE:
            problems.add(number, f"a line of more than {MAX_LINE} bytes")
            is_rest = not is_whole
        elif line.startswith(b"#") or not line.strip():
            continue
        elif not is_whole:
            problems.add(number, "the page ends within this line, so its value may be cut")
        else:
            yield number, line.removeprefix(b"\xef\xbb\xbf")


def _parsed(number: int, name: str, line: bytes, problems: Problems) -> Series | None:
    try:
        from prometheus_client.parser import text_string_to_metric_families
    except ImportError:
        raise MissingExtra("prometheus_client", "prometheus") from None
    try:
        samples = [s for family in text_string_to_metric_families(line.decode("utf-8")) for s in family.samples]
    except UnicodeDecodeError:
        problems.add(number, f"{name}: not UTF-8")
        return None
    except (ValueError, KeyError, IndexError, TypeError):  # all that the parser raises on bad text
        samples = []
    if len(samples) != 1:
        problems.add(number, f"{name}: no name, labels and value")
        return None
    try:
        value = float(samples[0].value)
    except OverflowError:  # a whole number of hundreds of digits
        value = math.inf
    if not math.isfinite(value):
        problems.add(number, f"{name}: not a finite number")
        return None
    return Series(number, name, samples[0].labels, value)
