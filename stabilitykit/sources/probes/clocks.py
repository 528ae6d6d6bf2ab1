"""Two clocks, read together: of two processes, two machines, or two kinds on one machine."""

from __future__ import annotations

import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from stabilitykit.sources.probes.drain import drain

__all__ = ["ClockProbe", "answer_clock", "ask_clock"]

_NS = struct.Struct("<q")


class ClockProbe:
    """Reads a remote clock between two looks at the local one.

    ``signals()`` gives, since the last reading of the probe,

    ``clock_samples``
        i64[2 n]: local and remote time in nanoseconds, each since the probe's first reading, so that neither
        is so large that its nanoseconds are lost. The local time is the middle of the two looks.

    Parameters
    ----------
    remote
        Gives the other clock's nanoseconds; may take a while. An ``OSError`` means that there is no reading.
    local
        Gives this clock's nanoseconds.
    tries
        Looks for one reading; the one with the shortest round trip counts (Cristian).
    has_trips
        Add the round trip to each reading, i64[3 n], for ``clock_sync`` with ``columns: 3``.
    capacity
        Most readings held between two calls of ``signals()``; of more the latest count.

    Examples
    --------
    >>> ticks = iter([0, 10, 100, 110])
    >>> clocks = ClockProbe(remote=iter([7_000, 7_100]).__next__, local=ticks.__next__, tries=1)
    >>> clocks.read(), clocks.read(), clocks.signals()["clock_samples"].tolist()
    (True, True, [0, 0, 100, 100])
    """

    def __init__(
        self,
        remote: Callable[[], int],
        *,
        local: Callable[[], int] = time.monotonic_ns,
        tries: int = 3,
        has_trips: bool = False,
        capacity: int = 4096,
    ) -> None:
        self._remote, self._local, self._tries = remote, local, tries
        self._columns = 3 if has_trips else 2
        self._first: tuple[int, int] | None = None
        self._seen: deque[tuple[int, int, int]] = deque(maxlen=capacity)

    def read(self) -> bool:
        """Take one reading; False when the remote clock did not answer."""
        looks = [look for look in (self._look() for _ in range(self._tries)) if look is not None]
        if not looks:
            return False
        local, remote, trip = min(looks, key=lambda look: look[2])
        if self._first is None:
            self._first = local, remote
        self._seen.append((local - self._first[0], remote - self._first[1], trip))
        return True

    def _look(self) -> tuple[int, int, int] | None:
        before = self._local()
        try:
            remote = self._remote()
        except OSError:
            return None
        after = self._local()
        return before + (after - before) // 2, remote, after - before

    def signals(self) -> dict[str, Any]:
        """Give what was read since the last call."""
        seen = drain(self._seen)
        if not seen:
            return {}
        return {"clock_samples": np.array([look[: self._columns] for look in seen], np.int64).reshape(-1)}


def answer_clock(connection: socket.socket, clock: Callable[[], int] = time.monotonic_ns) -> None:
    """Answer each byte on a connection with this process's clock, until the other side closes it."""
    while connection.recv(1):
        connection.sendall(_NS.pack(clock()))


def ask_clock(connection: socket.socket) -> Callable[[], int]:
    """Give a clock for ``ClockProbe``: the one that ``answer_clock`` serves at the other end."""

    def ask() -> int:
        connection.sendall(b"?")
        answer = b""
        while len(answer) < _NS.size:
            part = connection.recv(_NS.size - len(answer))
            if not part:
                raise ConnectionError("the other clock has gone")
            answer += part
        return int(_NS.unpack(answer)[0])

    return ask
