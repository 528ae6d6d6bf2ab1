"""What a report remembers of a conversation, and how it is thinned out for drawing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import attrs

from stabilitykit.decision import Decision
from stabilitykit.turn import Turn

__all__ = ["Band", "Track", "bands", "context_use", "thinned"]


@attrs.define(eq=False)
class Track:
    """The course of one conversation: a value a turn in each list."""

    name: str
    turns: list[int] = attrs.field(factory=list)
    ttft_ms: list[float] = attrs.field(factory=list)
    itl_ms: list[float] = attrs.field(factory=list)
    context: list[float] = attrs.field(factory=list)
    states: list[int] = attrs.field(factory=list)
    fired: list[tuple[int, str]] = attrs.field(factory=list)

    def add(self, turn: Turn, decision: Decision, state: int) -> None:
        """Remember one turn; a duplicate or late one changes nothing."""
        if self.turns and decision.turn_id <= self.turns[-1]:
            return
        self.turns.append(decision.turn_id)
        self.ttft_ms.append(_finite(turn.ttft_ms))
        self.itl_ms.append(_finite(turn.itl_ms))
        self.context.append(context_use(turn))
        self.states.append(state)
        fired = [m.rule for m in decision.matches if m.fired and m.scope == "session"]
        if fired:
            self.fired.append((decision.turn_id, ", ".join(fired)))

    @property
    def worst(self) -> int:
        """Index of the most severe state reached."""
        return max(self.states, default=0)


@attrs.frozen
class Band:
    """A stretch of turns in one state."""

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
