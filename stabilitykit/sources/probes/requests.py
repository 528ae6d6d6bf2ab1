"""How many requests the host has open, and how long the oldest has waited for its first token."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

__all__ = ["OpenRequest", "OpenRequests"]


class OpenRequests:
    """The requests that the host has sent to one replica.

    A server that is full lets requests wait, and the host sees it without being told: their first tokens do not come.
    ``signals()`` gives ``pending_requests`` and ``oldest_wait_ms`` (0 when none waits), and nothing before the first
    request.

    Parameters
    ----------
    clock
        Seconds that never go back.

    Examples
    --------
    >>> now = 5.0
    >>> requests = OpenRequests(clock=lambda: now)
    >>> with requests.open() as request:
    ...     now = 7.5
    ...     waiting = requests.signals()
    ...     request.first_token()
    ...     streaming = requests.signals()
    >>> waiting, streaming["oldest_wait_ms"], requests.signals()["pending_requests"]
    ({'pending_requests': 1, 'oldest_wait_ms': 2500.0}, 0.0, 0)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: dict[OpenRequest, float] = {}  # oldest first: a dict keeps the order of insertion
        self._count = 0
        self._is_used = False

    def open(self) -> OpenRequest:
        """Begin a request when ``with`` is entered, and end it, answered or not, when it is left."""
        return OpenRequest(self)

    def signals(self) -> dict[str, Any]:
        """Give what is open now."""
        with self._lock:
            if not self._is_used:
                return {}
            since = next(iter(self._waiting.values()), None)
            wait = 0.0 if since is None else max(0.0, self._clock() - since)
            return {"pending_requests": self._count, "oldest_wait_ms": 1000.0 * wait}

    def _begin(self, request: OpenRequest) -> None:
        with self._lock:
            self._waiting[request] = self._clock()
            self._count += 1
            self._is_used = True

    def _answer(self, request: OpenRequest) -> None:
        with self._lock:
            self._waiting.pop(request, None)

    def _end(self, request: OpenRequest) -> None:
        with self._lock:
            self._waiting.pop(request, None)
            self._count -= 1


class OpenRequest:
    """One request; made by `OpenRequests.open`."""

    def __init__(self, requests: OpenRequests) -> None:
        self._requests = requests

    def __enter__(self) -> OpenRequest:
        self._requests._begin(self)
        return self

    def first_token(self) -> None:
        """Say that the answer has begun; calling it for every token does no harm."""
        self._requests._answer(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._requests._end(self)
