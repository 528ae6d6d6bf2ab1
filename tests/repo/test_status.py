"""docs/status.md says what the tests say."""

from __future__ import annotations

import pytest

from tests import status
from tests.status import Mark

SOURCE = """
import pytest

@pytest.mark.capability("issue 2 §2: one")
@pytest.mark.parametrize("x", [1])
def test_a(x): ...

class TestB:
    @pytest.mark.capability("issue 2 §10: two", figure="speed")
    def test_c(self): ...
"""
FOUND = [
    Mark("issue 2 §2: one", "tests/t.py::test_a", ""),
    Mark("issue 2 §10: two", "tests/t.py::TestB::test_c", "speed"),
]


def test_marks_are_read_from_functions_and_methods():
    """A mark is found on a function and on a method, with its figure."""
    assert status.marks_of(SOURCE, "tests/t.py") == FOUND


@pytest.mark.parametrize(
    "source",
    [
        "pytestmark = pytest.mark.capability('of a module')",
        "@pytest.mark.capability('a', 'b')\ndef test_x(): ...",
        "@pytest.mark.capability(TEXT)\ndef test_x(): ...",
        "@pytest.mark.capability('a | b')\ndef test_x(): ...",
        "@pytest.mark.capability('a', number='b')\ndef test_x(): ...",
        "@pytest.mark.capability('a', figure='10,000 pairs')\ndef test_x(): ...",
        "@pytest.mark.capability('a', figure='.88 to .52')\ndef test_x(): ...",
        "@pytest.mark.capability('a', figure='')\ndef test_x(): ...",
    ],
)
def test_a_mark_that_cannot_become_a_row_is_an_error(source):
    """A mark that is not one plain text on one test function is refused with its place."""
    with pytest.raises(ValueError, match=r"^t\.py"):
        status.marks_of(source, "t.py")


def test_rows_join_days_and_figures():
    """Sections sort as numbers; a test never seen says so; a figure carries its target."""
    days = {"tests/t.py::test_a": "2026-01-31"}
    made = status.rows(reversed(FOUND), days, {"speed": {"value": 0.24, "target": 0.3}})
    assert [row.text() for row in made] == [
        "| issue 2 §2: one | `t.py::test_a` |  | 2026-01-31 |",
        "| issue 2 §10: two | `t.py::TestB::test_c` | 0.24 (target 0.3) | not yet |",
    ]


@pytest.mark.parametrize(
    ("value", "shown"), [(0.3, "0.3 (target 0.3)"), (0.31, "0.31 (target 0.3, missed)"), ("many", "many (target 0.3)")]
)
def test_a_figure_over_its_target_says_so(value, shown):
    """Missed is what is above it; a text is compared with nothing."""
    (row,) = status.rows(FOUND[1:], {}, {"speed": {"value": value, "target": 0.3}})
    assert row.figure == shown


def test_days_survive_a_round_trip():
    """The day of a row that was not run again is read back from the page."""
    page = status.HEAD + status.Row("c", ("tests/t.py::test_a", "tests/t.py::test_b"), "", "2026-01-31").text()
    assert status.days_of(page) == {"tests/t.py::test_a": "2026-01-31", "tests/t.py::test_b": "2026-01-31"}


def test_failure_forgets_the_day(tmp_path, monkeypatch):
    """A capability whose test fails is no longer claimed."""
    monkeypatch.setattr(status, "SEEN", tmp_path / "build" / "seen.json")
    status.remember({"tests/t.py::test_a": True}, day="2026-01-31")
    status.remember({"tests/t.py::test_a": False}, day="2026-02-01")
    page = status.Row("c", ("tests/t.py::test_a",), "", "2026-01-31").text()
    days = {**status.days_of(page), **status._load(status.SEEN)}
    assert status.rows(FOUND[:1], days, {})[0].day == "not yet"


def test_page_is_in_step_with_the_marks():
    """docs/status.md has the rows that the marks and the committed figures give (days aside)."""
    known = status._load(status.FIGURES)
    wanted = [row.text(with_day=False) for row in status.rows(status.marks(), {}, known)]
    page = status.PAGE.read_text(encoding="utf-8").splitlines()
    written = [f"{line.rsplit('|', 2)[0]}|  |" for line in page if line.startswith("| issue")]
    assert written == wanted, "run `make test`, then `make status`"


def test_page_has_a_table_for_each_issue():
    """One heading an issue, in order, and every row below the heading of its own."""
    sections = status.PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    names = [section.partition("\n")[0] for section in sections]
    assert names == sorted(set(names))
    for name, section in zip(names, sections, strict=True):
        rows = section.splitlines()[4:]
        assert all(row.startswith(f"| {name.lower()}") for row in rows if row)
        assert len(rows) <= 250  # nobody reads more
