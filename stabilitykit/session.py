"""The memory of conversations: rows in pages, found by (tenant, session), bounded by LRU and TTL.

A row is a fixed piece of a page, so that a session costs its bytes and little more, and that
snapshot, rollback, export and fork are copies of bytes.
"""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Self

import attrs
import numpy as np
from numpy.typing import NDArray

from stabilitykit.errors import UsageError

__all__ = ["Instance", "Rows", "Session", "SessionStore"]

Key = tuple[Hashable, Hashable]


class Rows:
    """Pages of equal rows, each starting as a copy of one template.

    Parameters
    ----------
    template
        float64[n], the row of a newborn.
    vector
        float32 elements of the vector block that may stand beside a row.
    """

    def __init__(self, template: NDArray[np.float64], vector: int) -> None:
        self.template = template
        self.vector = vector
        self.nbytes = template.nbytes
        self._source = template.ctypes.data
        self._pages: list[NDArray[np.float64]] = []
        self._free: list[int] = []
        self._page_rows = 16

    def take(self) -> int:
        """Give the address of a fresh row."""
        if not self._free:
            self._grow()
        at = self._free.pop()
        ctypes.memmove(at, self._source, self.nbytes)
        return at

    def give(self, at: int) -> None:
        """Take a row back."""
        self._free.append(at)

    def _grow(self) -> None:
        page = np.empty((self._page_rows, self.template.size))
        first = page.ctypes.data
        self._pages.append(page)
        self._free = [first + k * self.nbytes for k in range(self._page_rows - 1, -1, -1)]
        self._page_rows = min(4096, 2 * self._page_rows)

    def view(self, at: int) -> NDArray[np.float64]:
        """See the row at an address as an array (no copy; only while the row is taken)."""
        return np.frombuffer(memoryview((ctypes.c_double * self.template.size).from_address(at)), np.float64)

    def words(self, at: int) -> Any:
        """See the row at an address as whole 64-bit words (no copy)."""
        return (ctypes.c_uint64 * self.template.size).from_address(at)

    def copy(self, source: int, target: int) -> None:
        """Copy one row over another."""
        ctypes.memmove(target, source, self.nbytes)


@attrs.define(eq=False)
class Memory:
    """A row and, once an array came, its vector block."""

    rows: Rows
    row: int
    vec: NDArray[np.float32] | None = None
    vec_at: int = 0

    def need_vector(self) -> NDArray[np.float32] | None:
        """Give the vector block, allocated once; None where the pack needs none."""
        if self.vec is None and self.rows.vector:
            self.vec = np.zeros(self.rows.vector, np.float32)
            self.vec_at = self.vec.ctypes.data
        return self.vec

    def copy(self) -> Self:
        """Copy it into memory of its own."""
        twin = attrs.evolve(self, row=self.rows.take(), vec=None, vec_at=0)
        self.rows.copy(self.row, twin.row)
        if self.vec is not None:
            twin.vec = np.array(self.vec)
            twin.vec_at = twin.vec.ctypes.data
        return twin

    def release(self) -> None:
        """Give the row back; the object is dead afterwards."""
        self.rows.give(self.row)
        self.row = 0


@attrs.define(eq=False)
class Session(Memory):
    """One conversation.

    ``model`` is the last one known, ``said_model`` what the last turn said; ``stale`` how many
    late turns came in a row since which turn.
    """

    key: Key = ("", "")
    last: int = -1
    revision: int = 0
    model: str | None = None
    said_model: str | None = None
    seen: float = 0.0
    decision: Any = None
    kept: bool = False
    stale: tuple[int, int] = (-1, 0)
    past: Any = None

    def copy(self) -> Self:
        """Copy it, without the past."""
        twin = super().copy()
        twin.past = None
        return twin


@attrs.define(eq=False)
class Instance(Memory):
    """One replica or device.

    ``sampled_s`` is the time the next sample must beat, ``taken_s`` the one its age is judged by;
    ``is_timed`` once it was observed or sampled with a time: then a turn without one is no sample.
    """

    key: Key = ("", "")
    sampled_s: float | None = None
    taken_s: float | None = None
    is_timed: bool = False

    def beats(self, at: float | None) -> bool:
        """Tell whether a turn whose replica or device signals are from then is a sample."""
        if at is None:
            return not self.is_timed
        return self.sampled_s is None or at > self.sampled_s

    def is_late(self, at: float | None) -> bool:
        """Tell whether an observation made then is no newer than what is known."""
        return at is not None and self.sampled_s is not None and at <= self.sampled_s


class SessionStore:
    """Sessions by key, least recently used first; the most severe ones go last.

    Parameters
    ----------
    capacity
        Most sessions held at once.
    ttl_s
        Seconds of silence after which a session is forgotten (None: never).
    clock
        Gives seconds that never go back.
    on_drop
        Called with each session dropped for want of room or by age, before its memory goes.

    Attributes
    ----------
    dropped
        How many sessions left by age (``ttl``) and for want of room (``capacity``).
    dropped_in_trouble
        How many of them were in the most severe state.
    """

    def __init__(
        self,
        capacity: int,
        ttl_s: float | None,
        clock: Callable[[], float],
        on_drop: Callable[[Session, str], None],
    ) -> None:
        if capacity < 1:
            raise UsageError(f"capacity must be at least 1, not {capacity}")
        self.capacity = capacity
        self.ttl_s = ttl_s
        self.clock = clock
        self.live: OrderedDict[Key, Session] = OrderedDict()
        self.kept: OrderedDict[Key, Session] = OrderedDict()
        self.dropped = {"ttl": 0, "capacity": 0}
        self.dropped_in_trouble = 0
        self._on_drop = on_drop

    def __len__(self) -> int:
        return len(self.live) + len(self.kept)

    def find(self, key: Key) -> Session | None:
        """Find a session that has not outlived its time."""
        session = self.live.get(key) or self.kept.get(key)
        if session is not None and self._is_old(session, self.clock()):
            self._drop(session, "ttl")
            return None
        return session

    def add(self, session: Session) -> None:
        """Add a session, making room first."""
        now = self.clock()
        for shelf in (self.live, self.kept):
            # Two a time keeps up with any rate of arrivals and never stalls a turn.
            for _ in range(2):
                oldest = next(iter(shelf.values()), None)
                if oldest is not None and self._is_old(oldest, now):
                    self._drop(oldest, "ttl")
        while len(self) >= self.capacity:
            shelf = self.live or self.kept
            self._drop(next(iter(shelf.values())), "capacity")
        session.seen = now
        (self.kept if session.kept else self.live)[session.key] = session

    def keep(self, session: Session, kept: bool) -> None:
        """Move a session to the shelf that is emptied last, or back."""
        if session.kept != kept:
            source, target = (self.live, self.kept) if kept else (self.kept, self.live)
            source.pop(session.key, None)
            target[session.key] = session
            session.kept = kept

    def touch(self, session: Session) -> None:
        """Mark a session as just used."""
        (self.kept if session.kept else self.live).move_to_end(session.key)

    def holds(self, session: Session) -> bool:
        """Tell whether this very object is in the store."""
        return (self.kept if session.kept else self.live).get(session.key) is session

    def remove(self, key: Key) -> bool:
        """Forget a session; tells whether there was one."""
        session = self.live.pop(key, None) or self.kept.pop(key, None)
        if session is None:
            return False
        session.release()
        return True

    def _is_old(self, session: Session, now: float) -> bool:
        return self.ttl_s is not None and now - session.seen > self.ttl_s

    def _drop(self, session: Session, why: str) -> None:
        (self.kept if session.kept else self.live).pop(session.key, None)
        self.dropped[why] += 1
        self.dropped_in_trouble += session.kept
        self._on_drop(session, why)
        session.release()
