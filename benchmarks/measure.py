"""Ratios in one interleaved run: what the machine does to one side, it does to the other."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import attrs


@attrs.frozen
class Figure:
    """One number of the table; at most ``target`` is wanted."""

    name: str
    what: str
    value: float
    target: float | None = None
    note: str = ""

    def to_dict(self):
        day = datetime.now(UTC).date().isoformat()
        found = {"value": self.value, "day": day, "what": self.what, "note": self.note}
        return found if self.target is None else {**found, "target": self.target}


def times(batches: Sequence[Callable[[], object]], rounds: int = 15) -> list[float]:
    """Give the median CPU time (ns, of this thread) of each batch; the batches take turns."""
    found: list[list[int]] = [[] for _ in batches]
    for batch in batches:
        batch()
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for k, batch in enumerate(batches):
                start = time.thread_time_ns()
                batch()
                found[k].append(time.thread_time_ns() - start)
    finally:
        gc.enable()
    return [statistics.median(t) for t in found]


def over(calls: Sequence[object], fn: Callable[..., object]) -> Callable[[], None]:
    """Make a batch: the function on every prebuilt argument."""

    def batch() -> None:
        for call in calls:
            fn(call)

    return batch


def significant(value: float) -> float:
    """Keep three significant digits."""
    return float(f"{value:.3g}")
