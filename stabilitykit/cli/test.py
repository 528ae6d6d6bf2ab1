"""``stabilitykit test``: the cases that stand beside packs."""

from __future__ import annotations

import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Annotated, Any

import attrs
import typer

from stabilitykit.cli.coverage import as_dict, show_coverage
from stabilitykit.cli.output import fail, line, plain, record
from stabilitykit.cli.packs import cases_beside, names_or_shipped, pack_of
from stabilitykit.compiled.program import build_program
from stabilitykit.engine import Engine
from stabilitykit.engine.coverage import Coverage, Watch
from stabilitykit.errors import PackError, Problem, UsageError
from stabilitykit.rules.case_run import CaseFailure, run_case
from stabilitykit.rules.cases import CaseFile, read_cases

__all__ = ["run_cases_beside"]

_NOT_XML = dict.fromkeys((*range(9), 11, 12, *range(14, 32)), "�")


@attrs.frozen
class _Done:
    """One case that was run."""

    name: str
    line: int
    seconds: float
    failures: tuple[CaseFailure, ...]


@attrs.frozen
class _Suite:
    """The cases of one pack."""

    pack: str
    file: str
    done: tuple[_Done, ...]
    coverage: Coverage | None = None

    @property
    def failed(self) -> int:
        return sum(bool(d.failures) for d in self.done)


def run_cases_beside(
    packs: Annotated[
        list[str] | None, typer.Argument(metavar="[PACK]...", help="Shipped packs or paths [all shipped].")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="OUT.xml", help="Write the results as JUnit XML.")
    ] = None,
    is_covering: Annotated[
        bool, typer.Option("--coverage", help="Say what of each pack no case shows; less than all is a finding.")
    ] = False,
    is_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Run the cases of packs (`x.test.yaml` beside `x.yaml`), each case on a fresh engine.

    With --coverage: every comparison of every rule seen true and false, every rule fired and silent, every state
    entered, every transition taken. A pack answers for what stands in its own file; an inherited machine is covered
    by the cases of all packs named that have it.

    Exit codes: 0 all hold, 1 a case fails, a pack has none, or coverage below 100 %, 2 a bad pack or case file.
    """
    suites = _covered(list(names_or_shipped(packs))) if is_covering else [_run(n) for n in names_or_shipped(packs)]
    if junit is not None:
        _write_junit(junit, suites)
    if is_json:
        record({"packs": [_as_dict(s) for s in suites]})
    else:
        _show(suites)
    if any(s.failed or not s.file or (s.coverage and s.coverage.ratio < 1.0) for s in suites):
        fail(1)


def _run(name: str, watches: list[Watch] | None = None) -> _Suite:
    pack = pack_of([name])
    path = cases_beside(name)
    coverage = None if watches is None else Coverage(pack)
    if path is None:
        return _Suite(name, "", (), coverage)
    cases = _read(path, pack)
    program = build_program(pack)
    done = []
    for case in cases.cases:
        started = time.perf_counter()
        engine = Engine(program) if watches is None else Watch(program)
        failures = tuple(run_case(case, pack, engine, cases.file))
        done.append(_Done(case.name, case.line, time.perf_counter() - started, failures))
        if isinstance(engine, Watch) and coverage is not None and watches is not None:
            coverage.add(engine)
            watches.append(engine)
    return _Suite(name, cases.file, tuple(done), coverage)


def _covered(names: list[str]) -> list[_Suite]:
    """Run the cases of all packs, then let every pack's machine see the cases of all."""
    watches: list[Watch] = []
    suites = [_run(name, watches) for name in names]
    for suite in suites:
        for watch in watches:
            if suite.coverage is not None:
                suite.coverage.add_steps(watch)
    return suites


def _read(path: Path, pack: Any) -> CaseFile:
    try:
        return read_cases(path.read_bytes(), str(path), pack)
    except OSError as error:
        raise PackError([Problem(str(path), 1, 1, "SK101", error.strerror or type(error).__name__)]) from None


def _show(suites: list[_Suite]) -> None:
    for suite in suites:
        name = (plain(suite.pack), "bold")
        if not suite.done:
            line(name, ": no cases" if suite.file else ": no case file (x.test.yaml beside x.yaml)")
            show_coverage(suite.coverage)
            continue
        count = f"{len(suite.done)} case{'s' * (len(suite.done) != 1)}"
        if not suite.failed:
            line(name, f": {count} ", ("hold", "green"))
        else:
            line(name, ": ", (f"{suite.failed} of {count} fail", "bold red"))
        for done in suite.done:
            for failure in done.failures:
                line(f"  {plain(failure)}")
        show_coverage(suite.coverage)
    total, failed = sum(len(s.done) for s in suites), sum(s.failed for s in suites)
    line(f"{total} cases, ", (f"{failed} failed", "bold red" if failed else "green"))


def _as_dict(suite: _Suite) -> dict[str, Any]:
    return {
        "pack": suite.pack,
        "file": suite.file,
        "cases": [
            {"name": d.name, "line": d.line, "failures": [f"{f.place}: {f.message}" for f in d.failures]}
            for d in suite.done
        ],
        **({} if suite.coverage is None else {"coverage": as_dict(suite.coverage)}),
    }


def _write_junit(path: Path, suites: list[_Suite]) -> None:
    root = ET.Element("testsuites", name="stabilitykit")
    for suite in suites:
        attributes = {"name": suite.pack, "tests": str(len(suite.done)), "failures": str(suite.failed), "errors": "0"}
        element = ET.SubElement(root, "testsuite", {k: _xml(v) for k, v in attributes.items()})
        for done in suite.done:
            where = {"name": done.name, "classname": suite.pack, "file": suite.file, "line": str(done.line)}
            where["time"] = f"{done.seconds:.6f}"
            case = ET.SubElement(element, "testcase", {k: _xml(v) for k, v in where.items()})
            for failure in done.failures:
                ET.SubElement(case, "failure", message=_xml(failure.message)).text = _xml(str(failure))
    try:
        ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise UsageError(f"--junit: {path}: {error.strerror or type(error).__name__}") from None


def _xml(text: str) -> str:
    return text.translate(_NOT_XML)
