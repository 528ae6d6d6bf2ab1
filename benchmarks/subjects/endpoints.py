"""Hosted endpoints, each replayed as one conversation: false alarms of latency in their calm halves.

DIR holds `traces/llmperf_individual.jsonl`: 13 endpoints, 150 requests each, refused and failed ones among them, which
are turns like others. The calm half of an endpoint is the one whose slowest gap between tokens is nearer to its median.
`other half` is no error rate: some of it is trouble. Nothing is fitted to these halves but the breaker's own defaults
(see `breaker`, which resamples the same endpoints), so there are no folds. That silence is no deafness is shown by
slowing every turn from the 31st timed answer on down threefold. `check` takes a half by lot. Intervals: endpoints drawn
with replacement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
import numpy as np
from numpy.typing import NDArray

from benchmarks.subjects.breaker import detector, static, trips
from benchmarks.subjects.replay_real import CALM_TURNS, WARM, gaps, llmperf_turns, spread
from benchmarks.subjects.report import Line, Report, Target
from stabilitykit import Engine, Turn

TITLE = "Hosted endpoints: false alarms of latency in calm halves"
WANTED, SLOWER, PATIENCE, DRAWS, ONCE = 2.0, 3.0, 50, 1000, 2.0

Alarms = Callable[[list[Turn]], NDArray[np.int64]]


def chat(turns: list[Turn]) -> NDArray[np.int64]:
    """Give how many latency rules of `chat` fired on each turn."""
    engine = Engine.load("chat")
    loud = {rule.id for rule in engine.pack.rules if "latency" in rule.tags}
    return np.array([sum(rule in loud for rule in engine.evaluate(turn).fired) for turn in turns])


def by_gap(over: Callable[[NDArray[np.float64]], NDArray[np.bool_]], is_row: bool = True) -> Alarms:
    """Give the alarms of a method that only knows the gaps between tokens; without one there is no turn for it."""

    def alarms(turns: list[Turn]) -> NDArray[np.int64]:
        told = np.zeros(len(turns), np.int64)
        timed = np.array([k for k, turn in enumerate(turns) if turn.itl_ms == turn.itl_ms], np.int64)
        found = over(np.array(gaps(turns)))
        told[timed[trips(found) if is_row else np.flatnonzero(found)]] = 1
        return told

    return alarms


def twice_the_first(run: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray(run > ONCE * np.median(run[:20]))


METHODS: dict[str, tuple[str, Alarms]] = {
    "never": ("trivial", lambda turns: np.zeros(len(turns), np.int64)),
    "one gap twice the median of the first 20": ("trivial", by_gap(twice_the_first, is_row=False)),
    "static, mean of 20, three in a row": ("source", by_gap(static)),
    "running p90 * 1.2, three in a row": ("reference", by_gap(detector(method="p90"))),
    "itl_breaker, three in a row": ("ours", by_gap(detector())),
    "chat, its latency rules": ("ours", chat),
}


def calm_half(turns: list[Turn]) -> int:
    """Give 0 or 1: the half whose slowest gap is nearer to its median; a half without gaps says nothing."""
    middle = len(turns) // 2
    halves = [gaps(turns[:middle]), gaps(turns[middle:])]
    spreads = [spread(half) if len(half) >= CALM_TURNS else np.inf for half in halves]
    return int(np.argmin(spreads))


def slowed(turns: list[Turn]) -> list[Turn]:
    """Slow a conversation down from its 31st timed answer on; only those that have one are given."""
    timed = [turn for turn in turns if turn.itl_ms == turn.itl_ms]
    return [attrs.evolve(t, itl_ms=t.itl_ms * (SLOWER if k >= WARM else 1.0)) for k, t in enumerate(timed)]


def tally(conversations: Sequence[list[Turn]], alarms: Alarms, calm: Sequence[int]) -> NDArray[np.float64]:
    """Give float64[endpoints, 6]: turns and alarms of the calm half, of the other, slowed runs and those not called."""
    rows = []
    for turns, which in zip(conversations, calm, strict=True):
        told, middle = alarms(turns), len(turns) // 2
        halves = [told[:middle], told[middle:]]
        row: list[float] = []
        for half in (halves[which], halves[1 - which]):
            row += [len(half), int(half.sum())]
        is_long = len(gaps(turns)) >= 2 * WARM
        late = alarms(slowed(turns))[WARM : WARM + PATIENCE] if is_long else np.ones(1)
        rows.append([*row, is_long, not late.any()])
    return np.array(rows, np.float64)


def figures(rows: NDArray[np.float64]) -> dict[str, float]:
    sums = rows.sum(axis=0).tolist()
    return {
        "calm / 1000": 1000 * sums[1] / sums[0],
        "other half / 1000": 1000 * sums[3] / sums[2],
        f"missed at x{SLOWER:g}": sums[5] / max(sums[4], 1),
    }


def line(method: str, kind: str, rows: NDArray[np.float64]) -> Line:
    drawn = np.random.default_rng(2).integers(0, len(rows), (DRAWS, len(rows)))
    table = np.array([list(figures(rows[k]).values()) for k in drawn])
    low, high = np.quantile(table, [0.025, 0.975], axis=0).tolist()
    told = figures(rows)
    return Line("endpoints", method, kind, told, dict(zip(told, zip(low, high, strict=True), strict=True)))


def run(data: Path) -> Report:
    """Replay every endpoint with every method."""
    conversations = list(llmperf_turns(data).values())
    calm = [calm_half(turns) for turns in conversations]
    lines = [line(name, kind, tally(conversations, alarms, calm)) for name, (kind, alarms) in METHODS.items()]
    lot = np.random.default_rng(8).integers(0, 2, len(calm)).tolist()
    lines.append(line("chat, halves by lot", "check", tally(conversations, chat, lot)))
    ours = next(one for one in lines if one.method.startswith("chat, its"))
    target = Target("false alarms / 1000 calm turns, chat", WANTED, ours.figures["calm / 1000"], at_least=False)
    turns = sum(len(c) // 2 for c in conversations)
    return Report(lines, [target], [f"{len(conversations)} endpoints, about {turns} turns in calm halves."])
