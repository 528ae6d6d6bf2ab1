"""Lines that a terminal has wrapped: which neighbours may be one line, and whether a literal lies across the break."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

__all__ = ["MAX_JOINED", "MIN_WIDTH", "Joined", "Seams"]

MIN_WIDTH = 60
"""No terminal is narrower: a shorter line ended by itself."""
MAX_JOINED = 4
"""Lines that one line may have become; 8 KiB at most."""
_MAX_TEXT = 8_192


@attrs.frozen
class Joined:
    """Some lines put together, and where in the text they meet."""

    first: int
    last: int
    text: bytes
    seams: tuple[int, ...]


class Seams:
    """The line breaks of one block."""

    def __init__(self, data: bytes, literals: Any) -> None:
        self._data, self._literals = data, literals
        breaks = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
        self._starts = np.concatenate([[0], breaks + 1])
        self._ends = np.concatenate([breaks, [len(data)]])

    def candidates(self, hits: Iterable[Any]) -> Iterator[tuple[int, int, int]]:
        """Give (index, start, end) of the lines that hold a literal, or begin one that the next line ends."""
        spans = [match.span() for match in hits]
        index = np.searchsorted(self._starts, [s for s, _ in spans], "right") - 1 if spans else np.empty(0, int)
        across = self._across()
        if not across:
            yield from zip(index.tolist(), (s for s, _ in spans), (e for _, e in spans), strict=True)
            return
        for k in sorted({*index.tolist(), *across}):
            yield k, int(self._starts[k]), int(self._ends[k])

    def _across(self) -> set[int]:
        """Find lines whose break lies inside a literal."""
        if len(self._starts) < 2:
            return set()
        flat = self._data.replace(b"\n", b"")
        places = [match.span() for match in self._literals.finditer(flat)]
        if not places:
            return set()
        starts = self._starts - np.arange(len(self._starts))  # where each line begins without the breaks
        first = np.searchsorted(starts, [s for s, _ in places], "right") - 1
        last = np.searchsorted(starts, [e - 1 for _, e in places], "right") - 1
        wide = (self._ends - self._starts)[first] >= MIN_WIDTH
        return set(first[(first != last) & wide].tolist())

    def joins(self, index: int, floor: int = 0) -> Iterator[Joined]:
        """Give the longer lines that a line may be part of; none reaches back before the line `floor`."""
        for first in range(index, max(floor, index - MAX_JOINED + 1) - 1, -1):
            reach = int(self._reach[first])
            if reach < index:
                break
            start, width = int(self._starts[first]), int(self._ends[first] - self._starts[first])
            for last in range(max(first + 1, index), min(first + MAX_JOINED, reach + 1)):
                end = int(self._ends[last])
                if end - start - (last - first) <= _MAX_TEXT:
                    seams = tuple(width * k for k in range(1, last - first + 1))
                    yield Joined(first, last, self._data[start:end].replace(b"\n", b""), seams)

    @cached_property
    def _reach(self) -> NDArray[np.int64]:
        """The furthest line that each may be one with: all before it are as wide as the terminal, and alike."""
        widths = self._ends - self._starts
        lines = np.arange(len(widths))
        run_ends = np.append(np.flatnonzero(np.diff(widths)), len(widths) - 1)
        goes_to = np.minimum(run_ends[np.searchsorted(run_ends, lines)] + 1, len(widths) - 1)
        return np.where(widths >= MIN_WIDTH, goes_to, lines)
