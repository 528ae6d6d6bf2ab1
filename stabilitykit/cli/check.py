"""``stabilitykit check``: are packs sound, what do they cost, and can their rules ever run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import attrs
import typer

from stabilitykit.cli.output import fail, line, plain, record
from stabilitykit.cli.packs import ParamOption, names_or_shipped, pack_of
from stabilitykit.cli.recording import MapOption, Recording
from stabilitykit.compiled.program import Program, build_program
from stabilitykit.errors import PackError
from stabilitykit.rules.conditions.suggest import did_you_mean
from stabilitykit.rules.pack import MATURITY, Pack
from stabilitykit.rules.reach import Blind, blind_rules
from stabilitykit.signals import CATALOGUE, SCOPES
from stabilitykit.turn import Turn, is_missing

__all__ = ["check"]


@attrs.frozen(eq=False)
class _Checked:
    """What was found out about one pack."""

    name: str
    pack: Pack | None = None
    program: Program | None = None
    problems: PackError | None = None
    blind: Sequence[Blind] = ()
    columns: Mapping[str, str] = attrs.field(factory=dict)
    """Columns of the log without a meaning, under the signal whose name is near."""

    def columns_like(self, blind: Blind) -> list[str]:
        """Give the log's columns that may be what a rule lacks."""
        return [self.columns[name] for name in blind.missing if name in self.columns]

    @property
    def has_findings(self) -> bool:
        return bool(self.warnings) or any(b.is_dead for b in self.blind)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Findings that are no errors; a pack without rules is there to be extended, so it has none."""
        return (*self.pack.warnings, *_immature(self.pack)) if self.pack is not None and self.pack.rules else ()


def check(
    packs: Annotated[
        list[str] | None, typer.Argument(metavar="[PACK]...", help="Shipped packs or paths [all shipped].")
    ] = None,
    signals: Annotated[
        Path | None, typer.Option("--signals", metavar="LOG", help="Name the rules that this log can never make run.")
    ] = None,
    maps: MapOption = None,
    params: ParamOption = None,
    is_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Check packs: every problem with its place, warnings, memory, and rules that can never run.

    Exit codes: 0 sound, 1 warnings or rules that never run, 2 a bad pack.
    """
    found = [_check(name, params, signals, maps) for name in names_or_shipped(packs)]
    if is_json:
        record({"packs": [_as_dict(c) for c in found]})
    else:
        for checked in found:
            _show(checked)
    if any(c.problems for c in found):
        fail(2)
    if any(c.has_findings for c in found):
        fail(1)


def _check(name: str, params: Sequence[str] | None, log: Path | None, maps: Sequence[Path] | None) -> _Checked:
    try:
        pack = pack_of([name], params)
        program = build_program(pack)
    except PackError as problems:
        return _Checked(name, problems=problems)
    there, columns = _signals_of(log, maps, pack) if log else (set[str](), dict[str, str]())
    return _Checked(name, pack, program, blind=blind_rules(pack, there) if log else (), columns=columns)


def _immature(pack: Pack) -> Iterator[str]:
    """Name the pack's own rules whose first tag is no maturity; a rule without tags claims none."""
    for rule in pack.rules:
        if rule.file == pack.files[-1] and rule.tags and rule.tags[0] not in MATURITY:
            hint = did_you_mean(rule.tags[0], MATURITY) or f"one of {', '.join(MATURITY)}"
            yield f"{rule.file}:{rule.line}: warning: the first tag of `{rule.id}` is no maturity ({hint})"


def _signals_of(log: Path, maps: Sequence[Path] | None, pack: Pack) -> tuple[set[str], dict[str, str]]:
    """Collect the signals that a log ever brings, and its columns that mean nothing under the signal each is like."""
    found: set[str] = set()
    recording = Recording([log], maps, pack, keep_going=True)
    for entry in recording.entries():
        if isinstance(entry, Turn):
            found.update(n for n in CATALOGUE if n not in found and not is_missing(getattr(entry, n)))
            found.update(entry.extra or ())
        else:
            found.update(entry.signals)
    return found, {near: column for log in recording.logs for column, near in log.unknown.items() if near}


def _show(checked: _Checked) -> None:
    pack, program = checked.pack, checked.program
    if pack is None or program is None:
        problems = checked.problems.problems if checked.problems else ()
        line((plain(checked.name), "bold"), ": ", (f"{len(problems)} problem{'s' * (len(problems) != 1)}", "bold red"))
        for problem in problems:
            line(str(problem))
        return
    counts = [(len(pack.rules), "rule"), (len(pack.detectors), "detector"), (len(pack.states), "state")]
    line((plain(checked.name), "bold"), ": ", ", ".join(f"{n} {what}{'s' * (n != 1)}" for n, what in counts))
    for scope, memory in _memory(program).items():
        vectors = f" and {memory['vector_bytes']:,} bytes of vectors" if memory["vector_bytes"] else ""
        line(f"  a {scope} takes {memory['row_bytes']:,} bytes{vectors}")
    for warning in checked.warnings:
        line("  ", (warning, "yellow"))
    for blind in checked.blind:
        verdict = ("  can never run ", "yellow") if blind.is_dead else ("  sees less ", "cyan")
        why = f": without {', '.join(blind.missing)}" if blind.missing else ": waits for a rule that can never match"
        near = checked.columns_like(blind)
        hint = f" (did you mean its column {', '.join(map(plain, near))}? a mapping says so)" if near else ""
        line(verdict, blind.rule.id, why, hint)


def _memory(program: Program) -> dict[str, dict[str, int]]:
    """Give bytes by scope, for the scopes that the pack uses."""
    return {
        scope: {"row_bytes": row.nbytes, "vector_bytes": 4 * row.vector}
        for scope, row, tables in zip(SCOPES, program.rows, program.rules, strict=True)
        if scope == SCOPES[0] or tables.bits or any(d.scope == scope for d in program.detectors)
    }


def _as_dict(checked: _Checked) -> dict[str, Any]:
    pack, program = checked.pack, checked.program
    if pack is None or program is None:
        problems = checked.problems.problems if checked.problems else ()
        return {"pack": checked.name, "problems": [attrs.asdict(p) for p in problems]}
    return {
        "pack": checked.name,
        "fingerprint": pack.fingerprint,
        "problems": [],
        "warnings": list(checked.warnings),
        "rules": len(pack.rules),
        "detectors": len(pack.detectors),
        "states": [s.name for s in pack.states],
        "memory": _memory(program),
        "blind": [
            {"rule": b.rule.id, "missing": list(b.missing), "never": b.is_dead, "near": checked.columns_like(b)}
            for b in checked.blind
        ],
    }
