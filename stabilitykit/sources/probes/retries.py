"""How often a compare-and-swap has to be tried again."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar, cast

from stabilitykit.sources.probes.drain import drain

__all__ = ["RetryCounter"]

F = TypeVar("F", bound=Callable[..., Any])


class RetryCounter:
    """Counts attempts and failures of compare-and-swap loops (of a version column, an ETag, Redis' WATCH ...).

    ``signals()`` gives ``cas_failure_ratio``: failures / attempts since the last reading.

    Parameters
    ----------
    least
        Attempts below which nothing is said; they stay for the next reading. One failure of 10 attempts
        would be 10 %, where the limit to be judged is 0.04 %.
    capacity
        Most attempts held between two readings, 8 bytes each; of more the latest count.

    Examples
    --------
    >>> retries = RetryCounter(least=4)
    >>> for succeeds in (False, True, True, True):
    ...     retries.note(succeeds)
    >>> retries.signals(), retries.signals()
    ({'cas_failure_ratio': 0.25}, {})
    """

    def __init__(self, least: int = 1000, capacity: int = 65536) -> None:
        self._least = min(max(1, least), capacity)
        self._outcomes: deque[bool] = deque(maxlen=capacity)
        self.note: Callable[[bool], None] = self._outcomes.append
        """Counts one attempt by whether it succeeded; appending is atomic, any thread may call it."""

    def watch(self, attempt: F) -> F:
        """Count every call of a function that tells whether it succeeded."""
        note = self.note

        @functools.wraps(attempt)
        def counted(*args: Any, **kwargs: Any) -> Any:
            succeeded = attempt(*args, **kwargs)
            note(bool(succeeded))
            return succeeded

        return cast(F, counted)

    def signals(self) -> dict[str, Any]:
        """Give the share of failures since the last reading, once there are enough attempts."""
        if len(self._outcomes) < self._least:
            return {}
        outcomes = drain(self._outcomes)
        return {"cas_failure_ratio": sum(not succeeded for succeeded in outcomes) / len(outcomes)}
