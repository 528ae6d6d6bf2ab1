"""Lines that a terminal has wrapped: which neighbours may be one line, and whether a literal lies across the break."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

import attrs
import numpy as np

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
            if first < index and not self._goes_on(first, index):
                break
            for last in range(max(first + 1, index), min(first + MAX_JOINED, len(self._starts))):
                if not self._goes_on(first, last):
                    break
                pieces = [self._data[self._starts[k] : self._ends[k]] for k in range(first, last + 1)]
                if sum(map(len, pieces)) <= _MAX_TEXT:
                    yield Joined(first, last, b"".join(pieces), tuple(accumulate(map(len, pieces[:-1]))))

    def _goes_on(self, first: int, last: int) -> bool:
        """Tell whether every line before the last is as wide as the terminal, and all of them alike."""
        widths = (self._ends - self._starts)[first:last]
        return bool(widths[0] >= MIN_WIDTH and (widths == widths[0]).all())
