"""Every conformance case holds on the library's engine, as plain Python and as machine code."""

from __future__ import annotations

import pytest

from tests.conformance.engine import EngineAdapter
from tests.conformance.generate import FOLDER
from tests.conformance.run import load_pack_of, read_cases, run_case


@pytest.mark.capability(
    "issue 2 §3: over 1,000 conformance cases hold on the compiled, the uncompiled and the naive engine"
)
@pytest.mark.filterwarnings("ignore:(overflow|divide by zero|invalid value) encountered:RuntimeWarning")
@pytest.mark.parametrize("compiled", [False, None], ids=["plain", "machine"])
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_cases_hold_on_the_engine(path, compiled, tmp_path):
    """Each expectation of each case, in the order of the file."""
    wrong = []
    for number, case in enumerate(read_cases(path)):
        if "errors" not in case:
            folder = tmp_path / str(number)
            folder.mkdir()
            found = run_case(case, load_pack_of(case, FOLDER, folder), EngineAdapter(compiled=compiled))
            wrong += [f"{case['name']}: {line}" for line in found]
    assert wrong == []
