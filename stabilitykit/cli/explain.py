"""``stabilitykit explain``: one turn of a log, in words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stabilitykit.cli.output import line, plain, record
from stabilitykit.cli.packs import PackOption, ParamOption, engine_of
from stabilitykit.cli.progress import reading
from stabilitykit.cli.recording import KeepGoingOption, MapOption, Recording
from stabilitykit.decision import Decision
from stabilitykit.engine.replay import replay
from stabilitykit.errors import UsageError

__all__ = ["explain"]


def explain(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A log, as for `replay` [the shipped recording].")
    ] = None,
    turn: Annotated[int, typer.Option("--turn", "-t", min=0, metavar="N", help="Its turn id.")] = ...,  # type: ignore[assignment]
    session: Annotated[
        str | None,
        typer.Option("--session", "-s", metavar="ID", help="The conversation; the beginning of its id will do."),
    ] = None,
    pack: PackOption = None,
    maps: MapOption = None,
    params: ParamOption = None,
    keep_going: KeepGoingOption = False,
    is_json: Annotated[bool, typer.Option("--json", help="The decision as one JSON object.")] = False,
) -> None:
    """Replay a log up to one turn and say what was decided there, and why."""
    engine = engine_of(pack, params)
    recording = Recording([file] if file else None, maps, engine.pack, keep_going=keep_going)
    found: dict[object, Decision] = {}
    with reading(recording.paths) as advance:
        for step in replay(engine, recording.entries(advance)):
            decision = step.decision
            is_wanted = session is None or str(decision.session_id).startswith(session)
            if is_wanted and decision.scope == "session" and decision.turn_id == turn:
                found[decision.session_id] = decision
    decision = _the_one(found, turn, session)
    if is_json:
        record(decision.to_dict())
        return
    line(("session ", "dim"), plain(decision.session_id))
    for text in decision.explain().splitlines():
        line(plain(text))


def _the_one(found: dict[object, Decision], turn: int, session: str | None) -> Decision:
    if session is not None and session in found:
        return found[session]
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        of = f" of a session {session!r}" if session else ""
        raise UsageError(f"the log has no turn {turn}{of}")
    names = [plain(name) for name in list(found)[:8]]
    more = f" and {len(found) - len(names)} more" if len(found) > len(names) else ""
    raise UsageError(f"turn {turn} exists in several sessions: say --session\n  " + "\n  ".join(names) + more)
