"""What a probe shows: the live table while it runs, the same table and more at its end."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from stabilitykit.cli.output import Part, is_coloured, line, note, plain, table
from stabilitykit.cli.probe.client import Answer
from stabilitykit.cli.probe.figures import TIMES, Figures
from stabilitykit.cli.probe.objectives import Objective
from stabilitykit.cli.summary import Summary

__all__ = ["live", "show", "show_objectives"]

_TITLES = {
    "ttft_ms": "first token, ms", "itl_ms": "gap between tokens, ms", "prefill_ms": "prefill, ms",
    "rt_ms": "whole answer, ms",
}  # fmt: skip
_HEAD = ("", "p50", "p90", "p99", "max", "values")


def time_rows(figures: Figures) -> list[list[str]]:
    """Give the rows of the table of times."""
    times = figures.times()
    return [
        [_TITLES[name], *(f"{times[name][key]:,.1f}" for key in ("p50", "p90", "p99", "max")),
         f"{times[name]['count']:,.0f}"]
        for name in TIMES
        if name in times
    ]  # fmt: skip


def rate_text(figures: Figures) -> str:
    """Give one line: tokens a second, cache hits, requests."""
    rate, hits = figures.tokens_per_s, figures.hit_ratio
    parts = [
        f"{rate:,.1f} tokens/s" if rate is not None else "tokens/s unknown",
        f"cache hits {100 * hits:.1f} %" if hits is not None else "cache hits unknown",
        f"{figures.answered:,} of {figures.asked:,} requests answered in {figures.seconds:,.1f} s",
    ]
    return ", ".join(parts)


def state_text(summary: Summary) -> str:
    """Give how many conversations are in which state now."""
    now = [state for (scope, _), state in summary.final.items() if scope == "session"]
    return ", ".join(f"{name} {now.count(name)}" for name in summary.states if name in now) or "none yet"


@contextlib.contextmanager
def live(figures: Figures, summary: Summary, wanted: int) -> Iterator[Callable[[], object]]:
    """Give a function that draws the table anew: on a terminal only, beside the result."""
    if not is_coloured(sys.stderr):
        yield lambda: None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

    def draw() -> Any:
        drawn = Table(caption=f"{rate_text(figures)} ({wanted:,} wanted)\nconversations now: {state_text(summary)}")
        for title in _HEAD:
            drawn.add_column(title, justify="left" if not title else "right")
        for row in time_rows(figures):
            drawn.add_row(*row)
        return drawn

    with Live(draw(), console=Console(stderr=True), refresh_per_second=4, transient=True) as screen:
        yield lambda: screen.update(draw())


def show(figures: Figures, summary: Summary, first: Answer | None, metrics_problem: str) -> None:
    """Print what the load came to."""
    table(_HEAD, time_rows(figures))
    line()
    line((rate_text(figures), "bold"))
    if first is not None and first.is_answered:
        line(f"the first request, not counted above: {first.turn.rt_ms:,.0f} ms")
    elif first is not None:
        line(("the first request was not answered", "yellow"), f": {first.turn.error or 'refused'}")
    for error, count in figures.errors.most_common():
        line(("not answered", "yellow"), f": {plain(error)}, {count:,} times")
    if figures.faults:
        line(("faults in streams", "yellow"), f": {figures.faults:,}")
    summary.show()
    if metrics_problem:
        note(("no page of metrics: ", "yellow"), plain(metrics_problem))


def show_objectives(objectives: Sequence[Objective], figures: Figures) -> None:
    """Print each objective with its value and whether it is met."""
    if not objectives:
        return
    line()
    for objective in objectives:
        values = figures.values(objective.signal)
        value = objective.value(values)
        shown = "never measured" if value is None else f"{value:,.4g}"
        verdict: Part = ("met", "green") if objective.holds(values) else ("violated", "bold red")
        line("objective ", plain(objective.text), f": {shown}, ", verdict)
