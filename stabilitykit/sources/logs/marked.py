"""Markers out of a log: the turns that a host has written down between its other lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from stabilitykit.errors import RecordError
from stabilitykit.sources.logs.lines import Counts, blocks
from stabilitykit.sources.markers import Marker, parse_marker

__all__ = ["markers"]

_HEAD = b"stabilitykit.marker v"


def markers(stream: IO[bytes], counts: Counts | None = None) -> Iterator[tuple[int, Marker | RecordError]]:
    r"""Give (line number, marker) of each marker in a log; a bad one is given as its error, and reading goes on.

    Examples
    --------
    >>> import io
    >>> log = io.BytesIO(b'ready\nstabilitykit.marker v1 {"session_id": "c-1", "turn_id": 3, "itl_ms": 38.040}\n')
    >>> [(line, marker.turn) for line, marker in markers(log)]
    [(2, Turn(session_id='c-1', turn_id=3, itl_ms=38.04))]
    """
    for block in blocks(stream, counts):
        if _HEAD not in block.data:
            continue
        for number, line in enumerate(block.data.split(b"\n"), block.first):
            if _HEAD in line:
                try:
                    found: Marker | RecordError | None = parse_marker(line)
                except RecordError as problem:
                    found = problem
                if found is not None:
                    yield number, found
