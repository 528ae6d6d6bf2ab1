"""A Chrome trace of ``torch.profiler``: GPU kernels with their launches, or the operators of a CPU run."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from pathlib import Path
from typing import Any

import attrs

from stabilitykit.errors import RecordError
from stabilitykit.sample import Sample
from stabilitykit.sources.profiler.events import read_events
from stabilitykit.sources.profiler.text import MAX_SAMPLES, Timed, gpu_name, in_order, open_text

__all__ = ["read_trace"]

_RUNTIME = ("cuda_runtime", "cuda_driver")


@attrs.frozen
class _Span:
    """One complete event: when it began and how long it took in microseconds, and what ties it to others."""

    start: float
    length: float
    device: str
    correlation: Any

    @property
    def end(self) -> float:
        """When it was over."""
        return self.start + self.length


@attrs.define
class _Trace:
    """The events that say something about kernels."""

    kernels: list[_Span] = attrs.field(factory=list)
    launches: dict[Any, _Span] = attrs.field(factory=dict)
    syncs: list[_Span] = attrs.field(factory=list)
    operators: dict[Any, list[_Span]] = attrs.field(factory=lambda: defaultdict(list))
    held: int = 0

    def add(self, event: dict[str, Any]) -> None:
        """Take an event in, if it is one of these."""
        category, name = event.get("cat"), str(event.get("name"))
        if event.get("ph") != "X" or category not in ("kernel", "cpu_op", *_RUNTIME):
            return
        arguments = event.get("args")
        arguments = arguments if isinstance(arguments, dict) else {}
        device, correlation = gpu_name(arguments.get("device", event.get("pid"))), arguments.get("correlation")
        if not isinstance(correlation, int | str | None):
            raise ValueError("`correlation` is neither a number nor text")
        span = _Span(_number(event, "ts"), _number(event, "dur"), device, correlation)
        if category == "kernel":
            self.kernels.append(span)
        elif category == "cpu_op":
            self.operators[event.get("pid"), event.get("tid")].append(span)
        elif "Synchronize" in name:
            self.syncs.append(span)
        elif "Launch" in name:
            self.launches[span.correlation] = span
        self.held += 1


def _number(event: dict[str, Any], key: str) -> float:
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"`{key}` is no number")
    if key == "dur" and value < 0:
        raise ValueError("`dur` is negative")
    return float(value)


def read_trace(path: Path) -> list[Sample]:
    """Read a Chrome trace; see the package for what becomes of it.

    Of a launch, ``launch_host_us`` is the launching call, ``launch_queue_us`` the time from its return to the kernel's
    start, without the part of it (``launch_sync_us``) in which a synchronising call stood; ``launch_total_us`` is the
    time from the call to the kernel's start, shorter than the call when the kernel did not wait for its return.

    Raises
    ------
    RecordError
        See ``read_profile``.
    """
    trace = _Trace()
    with open_text(path) as stream:
        for line, event in read_events(stream, str(path)):
            try:
                trace.add(event)
            except (ValueError, TypeError, OverflowError) as error:
                raise RecordError(f"{path}:{line}: {error}") from None
            if trace.held > MAX_SAMPLES:
                raise RecordError(f"{path}:{line}: more than {MAX_SAMPLES} events: record fewer steps")
    return in_order(_kernels(trace) if trace.kernels else _outermost(trace))


def _kernels(trace: _Trace) -> list[Timed]:
    waits = _Waits(trace.syncs)
    rows = []
    for kernel in trace.kernels:
        signals = {"kernel_us": kernel.length}
        launch = trace.launches.get(kernel.correlation) if kernel.correlation is not None else None
        if launch is not None and kernel.start >= launch.start:
            sync = waits.within(launch.end, kernel.start)
            signals["launch_host_us"] = launch.length
            signals["launch_queue_us"] = max(kernel.start - launch.end, 0.0) - sync
            signals["launch_sync_us"] = sync
            signals["launch_total_us"] = kernel.start - launch.start
        rows.append((kernel.end, kernel.device, signals))
    return rows


class _Waits:
    """Times in which some thread stood in a synchronising call, as intervals that do not meet."""

    def __init__(self, syncs: list[_Span]) -> None:
        self.starts: list[float] = []
        self.ends: list[float] = []
        for sync in sorted(syncs, key=lambda span: span.start):
            if self.ends and sync.start <= self.ends[-1]:
                self.ends[-1] = max(self.ends[-1], sync.end)
            else:
                self.starts.append(sync.start)
                self.ends.append(sync.end)

    def within(self, start: float, end: float) -> float:
        """Give how much of an interval they cover."""
        total, k = 0.0, bisect_right(self.ends, start)
        while k < len(self.starts) and self.starts[k] < end:
            total += min(self.ends[k], end) - max(self.starts[k], start)
            k += 1
        return total


def _outermost(trace: _Trace) -> list[Timed]:
    """Leave out the operators that another one of their thread calls."""
    rows: list[Timed] = []
    for spans in trace.operators.values():
        end = -math.inf
        for span in sorted(spans, key=lambda s: (s.start, -s.end)):
            if span.start >= end:
                end = span.end
                rows.append((span.end, "cpu", {"kernel_us": span.length}))
    return rows
