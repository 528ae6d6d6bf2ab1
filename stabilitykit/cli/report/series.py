"""What a report remembers of a conversation, and how it is thinned out for drawing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import attrs

from stabilitykit.decision import Decision
from stabilitykit.sample import Sample
from stabilitykit.turn import Turn

__all__ = ["CURVES", "Band", "Curve", "Track", "bands", "context_use", "thinned"]


@attrs.frozen
class Curve:
    """One signal of a chart: its key (a colour), its title, the unit shown and what a value is multiplied by."""

    key: str
    title: str
    unit: str
    factor: float = 1.0


CURVES: Mapping[str, tuple[Curve, ...]] = {
    "session": (
        Curve("ttft_ms", "Time to first token", "ms"),
        Curve("itl_ms", "Inter-token latency", "ms"),
        Curve("context_usage_ratio", "Context in use", "%", 100.0),
    ),
    "replica": (
        Curve("running_requests", "Requests running", ""),
        Curve("waiting_requests", "Requests waiting", ""),
        Curve("kv_usage_ratio", "KV cache in use", "%", 100.0),
    ),
    "device": (
        Curve("gpu_sm_ratio", "SM utilisation", "%", 100.0),
        Curve("gpu_memory_ratio", "Memory in use", "%", 100.0),
        Curve("gpu_temperature_c", "Temperature", "°C"),
    ),
}
"""What is drawn of each scope."""


@attrs.define(eq=False)
class Track:
    """The course of one conversation, replica or device: one value a turn (or sample) in each list."""

    name: str
    scope: str
    at: list[int] = attrs.field(factory=list)
    values: tuple[list[float], ...] = attrs.field(init=False)
    states: list[int] = attrs.field(factory=list)
    fired: list[tuple[int, str]] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.values = tuple([] for _ in CURVES[self.scope])

    def add(self, entry: Turn | Sample, decision: Decision, state: int) -> None:
        """Remember one turn or sample; a duplicate or late turn changes nothing."""
        number = decision.turn_id if isinstance(entry, Turn) else len(self.at) + 1
        if self.at and number <= self.at[-1]:
            return
        self.at.append(number)
        for curve, values in zip(CURVES[self.scope], self.values, strict=True):
            values.append(_value(entry, curve.key) * curve.factor)
        self.states.append(state)
        fired = [m.rule for m in decision.matches if m.fired and m.scope == self.scope]
        if fired:
            self.fired.append((number, ", ".join(fired)))

    @property
    def worst(self) -> int:
        """Index of the most severe state reached."""
        return max(self.states, default=0)

    @property
    def what(self) -> str:
        """What one step of it is."""
        return "turn" if self.scope == "session" else "sample"


def _value(entry: Turn | Sample, name: str) -> float:
    if isinstance(entry, Turn):
        return context_use(entry) if name == "context_usage_ratio" else _finite(getattr(entry, name))
    return _finite(entry.signals.get(name))


@attrs.frozen
class Band:
    """A stretch of turns or samples in one state."""

    first: int
    last: int
    state: int


def _finite(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) and value >= 0 else math.nan


def context_use(turn: Turn) -> float:
    """Give the share of the context window in use, given or derived; NaN when unknown."""
    given = _finite(turn.context_usage_ratio)
    if given == given:
        return given
    window, tokens = _finite(turn.context_window_tokens), _finite(turn.input_tokens)
    if not window > 0 or tokens != tokens:
        return math.nan
    output = _finite(turn.output_tokens)
    return (tokens + (output if output == output else 0.0)) / window


def thinned(turns: Sequence[int], values: Sequence[float], most: int) -> Iterator[tuple[int, float]]:
    """Give at most about `most` points that keep every peak and every dip of a series.

    Of each bucket the least and the greatest value stay, in their order; a bucket without any
    value gives a NaN, so that a gap stays a gap.
    """
    if len(turns) <= most:
        yield from zip(turns, values, strict=True)
        return
    size = math.ceil(2 * len(turns) / most)
    for start in range(0, len(turns), size):
        known = [k for k in range(start, min(start + size, len(turns))) if values[k] == values[k]]
        if not known:
            yield turns[start], math.nan
            continue
        low, high = min(known, key=values.__getitem__), max(known, key=values.__getitem__)
        for k in sorted({low, high}):
            yield turns[k], values[k]


def bands(turns: Sequence[int], states: Sequence[int], most: int) -> list[Band]:
    """Give the stretches of equal state; when there are too many, the worst of each bucket of turns."""
    found: list[Band] = []
    size = 1
    while True:
        found.clear()
        for start in range(0, len(turns), size):
            last = min(start + size, len(turns)) - 1
            state = max(states[start : last + 1])
            if found and found[-1].state == state:
                found[-1] = attrs.evolve(found[-1], last=turns[last])
            else:
                found.append(Band(turns[start], turns[last], state))
        if len(found) <= most:
            return found
        size *= 2
