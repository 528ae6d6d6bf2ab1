"""What the repository cites is there: sections of the sources, and files by their path."""

from __future__ import annotations

import ast
import re

import pytest

from tests.repo.test_documents import DOCUMENTS, ROOT, name_of

SECTION = re.compile(r"\b([AB]\d\.\d)\b|formulas (\d\.\d)\b|(data/README)")
CITING = [*ROOT.glob("rules/*.yaml"), *ROOT.glob("stabilitykit/**/*.py")]
PATH = re.compile(r"`([\w.-]+(?:/[\w.-]+)*/?)`")
TOP = {"benchmarks", "docs", "rules", "stabilitykit", "tests", ".ci"}
READMES = sorted(p for top in ("benchmarks", "stabilitykit", "tests") for p in (ROOT / top).rglob("README*.md"))


def citations(text):
    """Give the anchors of all sections that a text cites."""
    found = [section or f"s{top}" if section or top else "data-readme" for section, top, _ in SECTION.findall(text)]
    return {anchor.lower().replace(".", "-") for anchor in found}


def docstrings(file):
    """Give the docstrings of a module, one behind the other."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    return "\n".join(ast.get_docstring(node) or "" for node in nodes if isinstance(node, kinds))


def gone(text):
    """Give the paths of a text, in backticks, that lead nowhere in this repository."""
    paths = [path for path in PATH.findall(text) if "/" in path and path.partition("/")[0] in TOP]
    modules = [path for path in PATH.findall(text) if re.fullmatch(r"\w+\.py", path)]
    missing = [path for path in paths if not (ROOT / path).exists()]
    return missing + [name for name in modules if not any(p for top in TOP for p in (ROOT / top).rglob(name))]


@pytest.mark.capability("issue 2 §4: every section that a pack or detector cites stands in docs/reference/sources.md")
def test_every_cited_section_has_its_anchor():
    """A reader of a rule finds what it cites, and the page holds nothing that nobody cites."""
    page = (ROOT / "docs" / "reference" / "sources.md").read_text(encoding="utf-8")
    cited = set().union(*(citations(file.read_text(encoding="utf-8")) for file in CITING))
    assert set(re.findall(r"^\(([\w-]+)\)=$", page, re.MULTILINE)) == cited


def test_a_citation_is_recognised():
    """Sections of A and B, corrected errors and the page on data."""
    assert citations("(A4.4; formulas 0.1, data/README) at 2.5 or A40.1") == {"a4-4", "s0-1", "data-readme"}


@pytest.mark.parametrize("path", [*DOCUMENTS, *READMES], ids=name_of)
def test_paths_in_documents_exist(path):
    """A path in backticks names a file or folder of the repository."""
    assert not gone(path.read_text(encoding="utf-8"))


def test_paths_in_docstrings_of_tests_exist():
    """So it is in what the tests say about themselves."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    assert not [(name_of(file), missing) for file in files if (missing := gone(docstrings(file)))]


def test_a_path_that_is_gone_is_noticed():
    """The check sees a missing file and a missing module, and leaves other words in backticks alone."""
    assert gone("`rules/chat.yaml`, `docs/`, `a/b`, `log.jsonl`, `engine.py`") == []
    assert gone("`tests/test_gone.py` and `directives_gone.py`") == ["tests/test_gone.py", "directives_gone.py"]
