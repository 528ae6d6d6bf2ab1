"""``stabilitykit probe diff``: two loads compared, with intervals."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import attrs
import numpy as np
import typer

from stabilitykit.cli.output import note, plain, record, table
from stabilitykit.cli.probe.figures import nearest_rank
from stabilitykit.errors import RecordError, UsageError

__all__ = ["Change", "compare", "diff"]

_DRAWS = 1_000
_LEAST = 8
"""Conversations of one load that an interval wants: a bootstrap of fewer is too narrow."""
Talk = Sequence[Mapping[str, Any]]
_NEEDED = ("ttft_ms", "itl_ms", "input_tokens", "cached_tokens", "output_tokens")


@attrs.frozen
class Probe:
    """What one file says.

    Parameters
    ----------
    told
        The whole file.
    prompts
        Hash of what was asked.
    talks
        Its turns, by conversation.
    seconds
        How long the load took.
    """

    told: Mapping[str, Any]
    prompts: str
    talks: Sequence[Talk]
    seconds: float


@attrs.frozen
class Change:
    """One figure of two loads.

    Parameters
    ----------
    before, after
        Its value in each; ``None`` where it was not measured.
    change
        after / before - 1; of a share the difference.
    interval
        95 % of the change, over conversations drawn anew; ``None`` where these are too few, and of tokens/s: a load
        has one duration, which no drawing of its conversations changes.
    """

    figure: str
    before: float | None
    after: float | None
    change: float | None
    interval: tuple[float, float] | None

    @property
    def is_sure(self) -> bool:
        """Whether the interval leaves out "no change"."""
        return self.interval is not None and not self.interval[0] <= 0.0 <= self.interval[1]


def diff(
    before: Annotated[Path, typer.Argument(metavar="A.json", help="Figures of one probe.")],
    after: Annotated[Path, typer.Argument(metavar="B.json", help="Figures of the other.")],
    is_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Compare two probes: tokens a second, first token, gaps, cache hits, and 95 % intervals of their changes.

    The intervals are over conversations, 8 or more a load: they say how far these could differ by chance within one
    run, and nothing of what else the machine did in another. Tokens a second have none: a run has one value.
    """
    first, second = read_probe(before), read_probe(after)
    if first.prompts != second.prompts:
        raise UsageError("the two loads had different prompts: their figures say nothing about the servers")
    for name in ("plan", "model"):
        if first.told.get(name) != second.told.get(name):
            note(("different ", "yellow"), f"{name}: {plain(first.told.get(name))} and {plain(second.told.get(name))}")
    changes = compare(first, second)
    if is_json:
        record({"changes": [{**attrs.asdict(c), "is_sure": c.is_sure} for c in changes]})
        return
    rows = [
        (c.figure, _shown(c, c.before), _shown(c, c.after), _relative(c, c.change), _between(c),
         _verdict(c))
        for c in changes
    ]  # fmt: skip
    table(("figure", "A", "B", "change", "95 % of it", "beyond chance"), rows)


def read_probe(path: Path) -> Probe:
    """Read the figures of a probe.

    Raises
    ------
    RecordError
        Not such a file.
    """
    try:
        told = json.loads(path.read_bytes())
        if told["stabilitykit_probe"] != 1:
            raise RecordError(f"{path}: of another version")
        talks: dict[str, list[Mapping[str, Any]]] = {}
        for turn in told["per_turn"]:
            talks.setdefault(turn["session_id"], []).append({k: turn[k] for k in _NEEDED})
        figures, prompts = told["figures"], told["prompts"]
        return Probe(told, str(prompts["sha256"]), list(talks.values()), float(figures["seconds"]))
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror or type(error).__name__}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, RecordError):
            raise
        raise RecordError(f"{path}: no figures of a probe ({type(error).__name__})") from None


def compare(before: Probe, after: Probe, seed: int = 0) -> list[Change]:
    """Compare two probes; conversations are drawn with replacement, whole, because their turns belong together."""
    drawn = np.random.default_rng(seed)
    return [_change(name, figure, before, after, drawn) for name, figure in _FIGURES.items()]


def _change(
    name: str, figure: Callable[[Sequence[Talk], float], float | None], a: Probe, b: Probe, drawn: np.random.Generator
) -> Change:
    before, after = figure(a.talks, a.seconds), figure(b.talks, b.seconds)
    change = _apart(name, before, after)
    if change is None or name in _ONCE or min(len(a.talks), len(b.talks)) < _LEAST:
        return Change(name, before, after, change, None)
    apart = []
    for _ in range(_DRAWS):
        again = [
            figure([p.talks[k] for k in drawn.integers(len(p.talks), size=len(p.talks))], p.seconds) for p in (a, b)
        ]
        if (one := _apart(name, *again)) is not None:
            apart.append(one)
    low, high = np.quantile(apart, [0.025, 0.975])
    return Change(name, before, after, change, (float(low), float(high)))


def _apart(name: str, before: float | None, after: float | None) -> float | None:
    if before is None or after is None:
        return None
    if name in _RATIOS:
        return after - before
    return after / before - 1.0 if before > 0 else None


def _known(talks: Sequence[Talk], name: str) -> list[float]:
    return [float(turn[name]) for talk in talks for turn in talk if turn[name] is not None]


def _throughput(talks: Sequence[Talk], seconds: float) -> float | None:
    tokens = _known(talks, "output_tokens")
    return sum(tokens) / seconds if tokens and seconds > 0 else None


def _quantile(name: str, share: float) -> Callable[[Sequence[Talk], float], float | None]:
    def figure(talks: Sequence[Talk], seconds: float) -> float | None:
        values = sorted(_known(talks, name))
        return nearest_rank(values, share) if values else None

    return figure


def _hits(talks: Sequence[Talk], seconds: float) -> float | None:
    told = [t for talk in talks for t in talk if t["cached_tokens"] is not None and t["input_tokens"]]
    return sum(t["cached_tokens"] for t in told) / sum(t["input_tokens"] for t in told) if told else None


_FIGURES: Mapping[str, Callable[[Sequence[Talk], float], float | None]] = {
    "tokens/s": _throughput,
    "first token p50, ms": _quantile("ttft_ms", 0.50),
    "first token p99, ms": _quantile("ttft_ms", 0.99),
    "gap of a turn p50, ms": _quantile("itl_ms", 0.50),
    "gap of a turn p99, ms": _quantile("itl_ms", 0.99),
    "cache hits": _hits,
}
_RATIOS = ("cache hits",)
_ONCE = ("tokens/s",)
"""Of a whole load, over its one duration."""


def _verdict(change: Change) -> str:
    if change.change is None:
        return "-"
    if change.figure in _ONCE:
        return "one value a load"
    if change.interval is None:
        return "too few conversations"
    return "yes" if change.is_sure else "no"


def _shown(change: Change, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.1f} %" if change.figure in _RATIOS else f"{value:,.1f}"


def _relative(change: Change, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{100 * value:+.1f} {'points' if change.figure in _RATIOS else '%'}"


def _between(change: Change) -> str:
    if change.interval is None:
        return "-"
    return " to ".join(_relative(change, end) for end in change.interval)
