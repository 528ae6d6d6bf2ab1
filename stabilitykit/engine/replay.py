"""Replay: a recorded stream of turns and samples walked through an engine, in its order."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence

import attrs

from stabilitykit.decision import Decision
from stabilitykit.engine import Engine
from stabilitykit.sample import Sample
from stabilitykit.turn import Turn

__all__ = ["Entry", "Step", "merge_on_time", "replay"]

Entry = Turn | Sample


@attrs.frozen(eq=False)
class Step:
    """One entry of a recording and what the engine said to it."""

    entry: Entry
    decision: Decision


def replay(engine: Engine, entries: Iterable[Entry]) -> Iterator[Step]:
    """Walk a stream of turns and samples through an engine, one by one.

    Parameters
    ----------
    engine
        Its memory moves as if the entries came from a host.
    entries
        In the order in which they happened; read lazily.

    Yields
    ------
    Step
        Entry and decision, in the same order.

    Raises
    ------
    UsageError
        An entry that can never work: its identity, or a sample's signal of no replica or device.

    Examples
    --------
    >>> from stabilitykit import Engine, Turn
    >>> turns = [Turn(session_id="c-1", itl_ms=30.0), Turn(session_id="c-1", itl_ms=31.0)]
    >>> [step.decision.turn_id for step in replay(Engine.load("base"), turns)]
    [1, 2]
    """
    for entry in entries:
        if isinstance(entry, Sample):
            yield Step(entry, observe(engine, entry))
        else:
            yield Step(entry, engine.evaluate(entry))


def observe(engine: Engine, sample: Sample) -> Decision:
    """Take one sample in."""
    return engine.observe(
        replica=sample.replica,
        device=sample.device,
        tenant=sample.tenant,
        timestamp_s=sample.timestamp_s,
        **sample.signals,
    )


def merge_on_time(streams: Sequence[Iterable[Entry]]) -> Iterator[Entry]:
    """Merge streams on their timestamps; each stream is put in the order of its own first.

    An entry without a timestamp stays behind the one before it in its stream. Of equal times the
    earlier stream goes first, so streams without any timestamp follow each other.

    Parameters
    ----------
    streams
        Held in memory as a whole while they are merged.
    """
    return (entry for *_, entry in heapq.merge(*(_timed(k, stream) for k, stream in enumerate(streams))))


def _timed(stream: int, entries: Iterable[Entry]) -> list[tuple[float, int, int, Entry]]:
    last = -math.inf
    timed = []
    for number, entry in enumerate(entries):
        if math.isfinite(entry.timestamp_s):
            last = entry.timestamp_s
        timed.append((last, stream, number, entry))
    return sorted(timed, key=lambda item: item[:3])
