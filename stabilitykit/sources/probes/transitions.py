"""How long a change of the host's own state takes."""

from __future__ import annotations

import functools
import inspect
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar, cast

from stabilitykit.sources.probes.drain import drain

__all__ = ["Transitions", "timed_transition"]

F = TypeVar("F", bound=Callable[..., Any])


class Transitions:
    """The transitions since the last reading.

    Parameters
    ----------
    signal
        Name under which the slowest one is given: a turn's ``state_transition_us``, or a signal that a
        pack declares, as ``slowest_transition_us`` of the pack ``runtime``.
    capacity
        Most transitions held; of more the latest count.
    """

    def __init__(self, signal: str = "state_transition_us", capacity: int = 4096) -> None:
        self.signal = signal
        self._elapsed_ns: deque[int] = deque(maxlen=capacity)
        self.add_ns: Callable[[int], None] = self._elapsed_ns.append
        """Takes one transition in, in nanoseconds; any thread may call it."""

    def drain_us(self) -> list[float]:
        """Take every transition out, oldest first, in microseconds."""
        return [ns / 1000 for ns in drain(self._elapsed_ns)]

    def signals(self) -> dict[str, Any]:
        """Give the slowest transition since the last reading; nothing where there was none.

        The slowest of a turn's transitions is compared with the slowest of earlier turns, so the past of
        ``transition_spike`` holds only while turns have about equally many. Else feed ``drain_us`` one by one.
        """
        taken = self.drain_us()
        return {self.signal: max(taken)} if taken else {}


class timed_transition:  # noqa: N801 - used like a function, as contextlib.suppress
    """Time one transition: ``with timed_transition(into):``, or ``@timed_transition(into)`` on a function.

    A transition that raises counts as well. The object of a ``with`` is for that block only: make a new one
    for each event. A decorated function may run in many threads; of a coroutine the waiting counts, too.

    Parameters
    ----------
    into
        Where the time goes; None: it only stands in ``elapsed_us``.
    timer
        Nanoseconds of a steady clock.

    Examples
    --------
    >>> ticks = iter([1000, 6200])
    >>> with timed_transition(timer=lambda: next(ticks)) as transition:
    ...     state = "warning"
    >>> transition.signals()
    {'state_transition_us': 5.2}
    """

    __slots__ = ("_into", "_start", "_timer", "elapsed_us")

    def __init__(self, into: Transitions | None = None, *, timer: Callable[[], int] = time.perf_counter_ns) -> None:
        self._into = into
        self._timer = timer
        self.elapsed_us = 0.0

    def __enter__(self) -> timed_transition:
        self._start = self._timer()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        elapsed = self._timer() - self._start
        self.elapsed_us = elapsed / 1000
        if self._into is not None:
            self._into.add_ns(elapsed)

    def signals(self) -> dict[str, Any]:
        """Give the transition just timed."""
        return {"state_transition_us" if self._into is None else self._into.signal: self.elapsed_us}

    def __call__(self, function: F) -> F:
        """Time every call of a function or coroutine function."""
        if self._into is None:
            raise TypeError("a decorated function needs Transitions to put its times into")
        timer, add = self._timer, self._into.add_ns

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            start = timer()
            try:
                return function(*args, **kwargs)
            finally:
                add(timer() - start)

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            start = timer()
            try:
                return await function(*args, **kwargs)
            finally:
                add(timer() - start)

        return cast(F, awaited if inspect.iscoroutinefunction(function) else timed)
