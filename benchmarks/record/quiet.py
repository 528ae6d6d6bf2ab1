"""Wait, a bounded time, until other work leaves the machine alone (Linux; elsewhere no wait)."""

from __future__ import annotations

import time
from pathlib import Path

__all__ = ["wait_until_quiet"]

_STAT = Path("/proc/stat")
_LOOK_S = 0.2
_BUSY_CORES = 0.25


def _busy_and_all() -> tuple[int, int]:
    ticks = [int(word) for word in _STAT.read_text(encoding="ascii").splitlines()[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def wait_until_quiet(limit_s: float) -> bool:
    """Wait until less than a quarter of a core is busy; tell whether that was seen within the limit.

    Call it while the server is idle, or it waits for the server itself.
    """
    if not _STAT.exists():
        return True
    cores = sum(line.startswith("cpu") for line in _STAT.read_text(encoding="ascii").splitlines()) - 1
    deadline = time.monotonic() + limit_s
    while True:
        busy, total = _busy_and_all()
        time.sleep(_LOOK_S)
        busy_after, total_after = _busy_and_all()
        if (busy_after - busy) * cores < _BUSY_CORES * (total_after - total):
            return True
        if time.monotonic() > deadline:
            return False
