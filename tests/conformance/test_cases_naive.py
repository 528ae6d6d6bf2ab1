"""Every conformance case holds on the oracle."""

from __future__ import annotations

import pytest

from tests.conformance.generate import FOLDER
from tests.conformance.naive import NaiveAdapter
from tests.conformance.run import load_pack_of, read_cases, run_case
from tests.naive.twins import TWINS


@pytest.mark.capability(
    "issue 2 §3: over 1,000 conformance cases hold on the compiled, the uncompiled and the naive engine"
)
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_cases_hold_on_the_oracle(path, tmp_path):
    """Each expectation of each case, in the order of the file."""
    wrong = []
    for number, case in enumerate(read_cases(path)):
        if "errors" not in case:
            folder = tmp_path / str(number)
            folder.mkdir()
            found = run_case(case, load_pack_of(case, FOLDER, folder), NaiveAdapter(TWINS))
            wrong += [f"{case['name']}: {line}" for line in found]
    assert wrong == []
