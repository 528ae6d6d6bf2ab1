"""The engine's lock as a door: one thread inside at a time, and none that comes back through itself."""

from __future__ import annotations

import threading
from types import TracebackType

from stabilitykit.engine.journal import Journal
from stabilitykit.errors import UsageError

__all__ = ["Door"]


class Door:
    """Holds the lock while open, and writes the journal's events once it is shut.

    Parameters
    ----------
    journal
        What was noted inside is written outside: a slow log handler keeps nobody waiting, and one
        that asks the engine gets an answer.
    """

    def __init__(self, journal: Journal) -> None:
        self.lock = threading.Lock()
        self._journal = journal
        self._inside = 0

    def __enter__(self) -> None:
        me = threading.get_ident()
        if self._inside == me:
            raise UsageError("a signal function cannot call the engine that is asking it")
        self.lock.acquire()
        self._inside = me

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inside = 0
        self.lock.release()
        self._journal.flush()
