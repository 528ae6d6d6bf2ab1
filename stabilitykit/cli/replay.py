"""``stabilitykit replay``: a log walked through a pack."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from stabilitykit.cli.output import fail, note, record
from stabilitykit.cli.packs import PackOption, ParamOption, engine_of
from stabilitykit.cli.progress import reading
from stabilitykit.cli.recording import FilesArgument, KeepGoingOption, MapOption, Recording
from stabilitykit.cli.report import Report
from stabilitykit.cli.summary import Summary
from stabilitykit.cli.timeline import Timeline
from stabilitykit.engine.replay import Step, replay
from stabilitykit.errors import UsageError
from stabilitykit.rules.conditions.suggest import did_you_mean
from stabilitykit.sample import Sample

__all__ = ["replay_command"]


def replay_command(
    files: FilesArgument = None,
    pack: PackOption = None,
    maps: MapOption = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="OUT.html", help="Write one self-contained HTML file.")
    ] = None,
    is_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a line: each decision, then a summary.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Print quiet turns one by one too.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the summary only.")] = False,
    fail_on: Annotated[
        str | None, typer.Option("--fail-on", metavar="STATE", help="Exit with 1 when anything reaches this state.")
    ] = None,
    params: ParamOption = None,
    keep_going: KeepGoingOption = False,
) -> None:
    """Replay logs through a pack: a timeline, a summary, an HTML report.

    Several files are merged in the order of their timestamps.
    """
    engine = engine_of(pack, params)
    states = [s.name for s in engine.pack.states]
    if fail_on is not None and fail_on not in states:
        raise UsageError(f"--fail-on: no state {fail_on!r} in this pack; {did_you_mean(fail_on, states)}")
    if report is not None and not report.parent.is_dir():
        raise UsageError(f"--report: no directory {report.parent}")
    recording = Recording(files, maps, engine.pack, keep_going=keep_going)
    summary, page = Summary(engine.pack), Report(engine.pack) if report else None
    timeline = Timeline(engine.pack, every=every)
    show = _printer(timeline, is_json=is_json, quiet=quiet)
    with reading(recording.paths) as advance:
        for step in replay(engine, recording.entries(advance)):
            summary.add(step)
            show(step)
            if page is not None:
                page.add(step)
    timeline.close()
    recording.report()
    if is_json:
        record({"type": "summary", **summary.to_dict(recording.bad_count)})
    else:
        summary.show()
    if report is not None and page is not None:
        _write(report, page.render(recording.paths, recording.bad_count))
    if fail_on is not None and summary.reached(fail_on):
        fail(1)


def _printer(timeline: Timeline, *, is_json: bool, quiet: bool) -> Callable[[Step], None]:
    if quiet:
        return lambda step: None
    return _record if is_json else timeline.show


def _record(step: Step) -> None:
    kind = "sample" if isinstance(step.entry, Sample) else "turn"
    record({"type": kind, **step.decision.to_dict()})


def _write(path: Path, page: str) -> None:
    try:
        # Whole or not at all; an id that is no text (a lone surrogate) is shown escaped.
        path.write_bytes(page.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise UsageError(f"--report: {path}: {error.strerror or type(error).__name__}") from None
    note(f"report: {path} ({len(page) / 1e6:.1f} MB)")
