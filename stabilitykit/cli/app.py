"""The commands put together, and what becomes of an exception."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from typing import Annotated, Any

import typer

from stabilitykit.cli import (
    baseline,
    calibrate,
    check,
    doctor,
    explain,
    health,
    kv,
    logs,
    probe,
    replay,
    rollout,
    rules,
    signals,
    test,
    warmup,
)
from stabilitykit.cli.output import Interrupted, ReaderGone, error, flush
from stabilitykit.errors import PackError, StabilityKitError

__all__ = ["app", "run"]

_WRONG_USE: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
"""Typer brings its own click since 0.20 and does not export this class."""

_INTERRUPTED = 130

app = typer.Typer(
    name="stabilitykit",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("check")(check.check)
app.command("test")(test.run_cases_beside)
app.command("replay")(replay.replay_command)
app.command("explain")(explain.explain)
app.add_typer(rules.app, name="rules")
app.add_typer(logs.app, name="logs")
app.add_typer(calibrate.app, name="calibrate")
app.add_typer(probe.app, name="probe")
app.add_typer(kv.app, name="kv")
app.add_typer(rollout.app, name="rollout")
app.command("baseline")(baseline.baseline)
app.command("signals")(signals.signals)
app.command("warmup")(warmup.warmup)
app.command("doctor")(doctor.doctor)
app.command("health")(health.health)


def _version(wanted: bool) -> None:
    if wanted:
        from stabilitykit import __version__

        typer.echo(f"stabilitykit {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an internal error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Is this conversation still healthy? Check packs, run their cases, replay logs.

    Exit codes: 0 clean, 1 findings, 2 wrong use or a bad pack or log, 3 an error of ours, 130 interrupted.
    """


def run(arguments: list[str]) -> int:
    """Run one command line; gives its exit code and never raises."""
    is_debug = "--debug" in arguments  # anywhere, because it is typed at the end of what just failed
    arguments = [a for a in arguments if a != "--debug"]
    try:
        code = _run(arguments)
        flush()
        return code
    except (BrokenPipeError, ReaderGone):  # the reader has seen enough (`| head`)
        with contextlib.suppress(OSError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        error("interrupted")
        return _INTERRUPTED
    except Interrupted as problem:
        error(f"interrupted: {problem}")
        return _INTERRUPTED
    except OSError as problem:  # a full disk, a file that has gone: nothing of ours
        if is_debug:
            traceback.print_exc()
        where = "" if problem.filename is None else f"{os.fsdecode(problem.filename)}: "
        error(f"{where}{problem.strerror or type(problem).__name__}", is_flushed=False)
        return 2
    except Exception as problem:
        if is_debug:
            traceback.print_exc()
        error(f"internal error: {type(problem).__name__}: {str(problem)[:200]!r} (--debug shows where)")
        return 3


def _run(arguments: list[str]) -> int:
    try:
        result = app(arguments, standalone_mode=False, prog_name="stabilitykit")
    except typer.Abort:
        raise KeyboardInterrupt from None
    except _WRONG_USE as problem:
        problem.show(sys.stderr)
        return 2
    except PackError as problem:
        error(f"{len(problem.problems)} problem{'s' * (len(problem.problems) != 1)}\n{problem}")
        return 2
    except StabilityKitError as problem:
        error(problem)
        return 2
    if result == _INTERRUPTED:  # what typer makes of Ctrl-C without a word
        raise KeyboardInterrupt
    return result if isinstance(result, int) else 0
