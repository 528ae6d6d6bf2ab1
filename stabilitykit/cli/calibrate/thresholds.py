"""``stabilitykit calibrate thresholds``: how far healthy conversations go, signal by signal."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import attrs
import typer

from stabilitykit.cli.calibrate.conformal import Threshold, calibrate
from stabilitykit.cli.output import fail, line, note, record, table
from stabilitykit.cli.recording import KeepGoingOption, MapOption, Recording
from stabilitykit.detectors import DETECTORS
from stabilitykit.engine.replay import Entry
from stabilitykit.errors import UsageError
from stabilitykit.rules.load import load_pack
from stabilitykit.signals import CATALOGUE
from stabilitykit.turn import Turn, is_missing

__all__ = ["Rows", "calibrate_thresholds", "furthest"]

NUMBERS = tuple(s.name for s in CATALOGUE.values() if s.kind == "number" and s.scope == "session")


class Rows:
    """The furthest a session goes: the greatest value that ``turns`` in a row reach.

    That is what a rule ``signal > threshold`` with ``for: N turns`` compares with its threshold. A turn without the
    signal neither adds nor interrupts.
    """

    def __init__(self, turns: int) -> None:
        self._last: deque[float] = deque(maxlen=turns)
        self.score = -math.inf

    def take(self, value: float) -> None:
        """Take one turn's value."""
        self._last.append(value)
        if len(self._last) == self._last.maxlen:
            self.score = max(self.score, min(self._last))


def furthest(
    entries: Iterable[Entry], names: Iterable[str], turns: int, *, below: bool = False
) -> dict[str, list[float]]:
    """Give the scores of the sessions by signal; a session without the signal, or too short, has none.

    Parameters
    ----------
    turns
        Turns in a row.
    below
        Less is worse: scores are negated values.
    """
    names = list(names)
    held: dict[str, dict[tuple[str, str], Rows]] = {name: defaultdict(lambda: Rows(turns)) for name in names}
    for entry in entries:
        if not isinstance(entry, Turn):
            continue
        for name in names:
            value = getattr(entry, name)
            if not is_missing(value) and math.isfinite(value):
                held[name][entry.tenant, entry.session_id].take(-value if below else value)
    return {name: [r.score for r in rows.values() if r.score > -math.inf] for name, rows in held.items()}


def calibrate_thresholds(
    files: Annotated[list[Path], typer.Argument(metavar="RECORDING...", help="Logs of healthy conversations.")],
    false_rate: Annotated[
        float, typer.Option("--false-rate", min=1e-4, max=0.5, help="Share of healthy sessions that may be called.")
    ] = 0.01,
    signals: Annotated[
        list[str] | None, typer.Option("--signal", help="Signal to calibrate, more than once [those that occur].")
    ] = None,
    below: Annotated[bool, typer.Option("--below", help="Less is worse: the rule is `signal < threshold`.")] = False,
    turns: Annotated[int, typer.Option("--for", min=1, max=100, help="Turns in a row, as the rule's `for`.")] = 1,
    maps: MapOption = None,
    keep_going: KeepGoingOption = False,
    is_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Choose thresholds from healthy conversations, with what they promise for others like them.

    Exit code 1 when no signal has enough sessions: then rules should only watch (severity info).
    """
    unknown = [name for name in signals or () if name not in NUMBERS]
    if unknown:
        raise UsageError(f"{unknown[0]!r} is no number that a turn has")
    recording = Recording(files, maps, load_pack("base", detectors=DETECTORS), keep_going=keep_going)
    scores = furthest(recording.entries(), signals or NUMBERS, turns, below=below)
    recording.report()
    found = {name: calibrate(values, false_rate) for name, values in scores.items() if values or signals}
    if below:
        found = {n: t if t.value is None else attrs.evolve(t, value=-t.value) for n, t in found.items()}
    if is_json:
        record({name: attrs.asdict(threshold) for name, threshold in found.items()})
    else:
        show(found, false_rate, turns, below=below)
    if all(t.value is None for t in found.values()):
        note("too few sessions for that rate: let rules watch, with severity info, and record more")
        fail(1)


def show(found: dict[str, Threshold], rate: float, turns: int, *, below: bool) -> None:
    """Print a table, and what it means."""
    rows: list[tuple[Any, ...]] = []
    for name, t in found.items():
        if t.value is None:
            rows.append((name, "watch only", f"{t.sessions} of {t.wanted}", "", ""))
        else:
            spread = f"{t.low:.2%} to {t.high:.2%}"
            rows.append((name, f"{t.value:.6g}", str(t.sessions), f"{t.mean:.2%}", spread))
    table(("signal", "below" if below else "above", "sessions", "false, mean", "19 recordings in 20"), rows)
    line(
        f"A session is called when {turns} turn{'s' * (turns != 1)} in a row go{'es' * (turns == 1)} beyond; "
        f"{rate:.2%} of healthy ones were allowed."
    )
