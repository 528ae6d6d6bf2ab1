"""Every pack of the conformance cases loads, or is refused with exactly the problems its case names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stabilitykit.compiled.program import build_program
from stabilitykit.errors import PackError, Problem
from tests.conformance.generate import FILES, FOLDER, rendered
from tests.conformance.run import load_pack_of, read_cases

PATHS = sorted(FOLDER.glob("*.json"))


def problems_of(case: dict[str, Any], write_to: Path) -> tuple[Problem, ...]:
    """Load the pack of a case and lay it out; give what was found."""
    try:
        build_program(load_pack_of(case, FOLDER, write_to))
    except PackError as error:
        return error.problems
    return ()


def is_as_named(wanted: dict[str, Any], found: Problem) -> bool:
    """Compare code, line, column and file, as far as the case names them."""
    return all(
        (
            wanted["code"] == found.code,
            wanted.get("line", found.line) == found.line,
            wanted.get("col", found.col) == found.col,
            found.file.endswith(wanted.get("file", "")),
        )
    )


@pytest.mark.capability(
    "issue 2 §3: over 1,000 conformance cases hold on the compiled, the uncompiled and the naive engine"
)
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_packs_load_or_are_refused_as_named(path, tmp_path):
    """All problems are found, in their order, and no others."""
    wrong = []
    for number, case in enumerate(read_cases(path)):
        folder = tmp_path / str(number)
        folder.mkdir()
        wanted, found = case.get("errors", []), problems_of(case, folder)
        if len(wanted) != len(found) or not all(map(is_as_named, wanted, found)):
            wrong.append(f"{case['name']}: {'; '.join(str(p).splitlines()[0] for p in found) or 'no problem'}")
    assert wrong == []


def test_names_are_unique():
    """A name finds one case."""
    names = [case["name"] for path in PATHS for case in read_cases(path)]
    assert len(names) == len(set(names))


@pytest.mark.capability("issue 2 §3: every conformance case names its sentence of the specification")
def test_each_case_names_its_sentence():
    """A case that cannot say which sentence it checks is not needed."""
    nameless = [c["name"] for p in PATHS for c in read_cases(p) if not c.get("sentence") or not c.get("section")]
    assert nameless == []


@pytest.mark.parametrize("name", FILES)
def test_generated_files_are_current(name):
    """The tables in the generator and the files agree."""
    assert (FOLDER / name).read_text(encoding="utf-8") == rendered(FILES[name]())
