"""Emptying what many threads append to."""

from __future__ import annotations

from collections import deque
from typing import TypeVar

__all__ = ["drain"]

T = TypeVar("T")


def drain(events: deque[T]) -> list[T]:
    """Take out what is there now; what comes in meanwhile is left for the next reading.

    Appending to a deque and popping from it are atomic, so neither side needs a lock.
    """
    taken: list[T] = []
    try:
        for _ in range(len(events)):
            taken.append(events.popleft())
    except IndexError:  # another reader was faster
        pass
    return taken
