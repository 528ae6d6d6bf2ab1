"""The documents list every error code there is, and each example raises its code where it says."""

from __future__ import annotations

import re

import pytest

from docs import errors

EXAMPLES = errors.examples()


@pytest.mark.capability("issue 2 §3: every error code has an example that raises it at its line and column")
def test_documents_and_code_have_the_same_codes(root):
    """Every code the library raises is in the table and has an example; nothing else is."""
    sources = (root / "stabilitykit").rglob("*.py")
    raised = {code for path in sources for code in re.findall(r"\bSK\d{3}\b", path.read_text(encoding="utf-8"))}
    listed = [example["code"] for example in EXAMPLES]
    assert list(errors.meanings()) == listed
    assert set(listed) == raised


@pytest.mark.capability("issue 2 §3: every error code has an example that raises it at its line and column")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["code"])
def test_example_raises_its_code(example, tmp_path):
    """An example has exactly one problem: its code, at its line and column."""
    (problem,) = errors.problems_of(example, tmp_path)
    assert problem.code == example["code"]
    assert (problem.line, problem.col) == (example.get("line", 0), example.get("col", 0))


def test_page_shows_each_message():
    """The page has a section for each code, with the message that the loader gives."""
    page = errors.page()
    for example in EXAMPLES:
        section = page.partition(f"\n### {example['code']}\n")[2].partition("\n### ")[0]
        assert re.search(rf"```text\n(pack\.yaml:\d+:\d+: )?{example['code']} ", section)
