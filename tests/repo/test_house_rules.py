"""Rules of the house that no linter knows: sizes, names, and what a committed file may say."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LIBRARY = sorted((ROOT / "stabilitykit").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
FILE_CAP, FILE_MEDIAN, FUNCTION_CAP, FUNCTION_MEDIAN = 400, 150, 60, 10
VAGUE = {"utils", "util", "helpers", "helper", "common", "core", "manager", "constants", "misc"}
MACHINE_PATH = re.compile(r"(?<![\w.$}])/(?:work|farm|root|home/\w+)/[\w.]")
TEXTS = {".py", ".md", ".yaml", ".yml", ".toml", ".json", ".sh", ".cfg", ""}


def name_of(path):
    """Name a file by its place in the repository."""
    return path.relative_to(ROOT).as_posix()


def functions(path):
    """Give the functions of a file with their sizes in lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [(node, (node.end_lineno or node.lineno) - node.lineno + 1) for node in nodes]


def committed():
    """Give the text files that git has or would take."""
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if out.returncode:
        pytest.skip("not a git checkout: cannot tell which files are committed")
    paths = [ROOT / line for line in out.stdout.splitlines()]
    return [p for p in paths if p.is_file() and p.suffix in TEXTS and p.stat().st_size < 1_000_000]


@pytest.mark.parametrize("path", LIBRARY, ids=name_of)
def test_sizes(path):
    """A file has at most 400 lines, a function at most 60."""
    long = [f"{node.name}: {size}" for node, size in functions(path) if size > FUNCTION_CAP]
    assert not long
    assert len(path.read_text(encoding="utf-8").splitlines()) <= FILE_CAP


def test_medians():
    """Files and functions are small as a rule, not only at the cap."""
    files = [len(p.read_text(encoding="utf-8").splitlines()) for p in LIBRARY]
    assert statistics.median(files) <= FILE_MEDIAN
    assert statistics.median(size for p in LIBRARY for _, size in functions(p)) < FUNCTION_MEDIAN


@pytest.mark.parametrize("path", LIBRARY, ids=name_of)
def test_no_vague_module(path):
    """A module is named after what it holds."""
    assert not VAGUE & {part.removesuffix(".py").strip("_") for part in path.relative_to(ROOT).parts}


def asserts(node):
    """Tell whether a test can fail: it asserts, expects an exception or a warning, or calls a check."""
    for n in ast.walk(node):
        if isinstance(n, ast.Assert | ast.Raise):
            return True
        if isinstance(n, ast.Call) and re.search(r"raises|warns|assert|check|expect|fail", ast.unparse(n.func)):
            return True
    return False


@pytest.mark.parametrize("path", TESTS, ids=name_of)
def test_every_test_can_fail_and_says_what_it_shows(path):
    """Each test has a docstring and at least one assertion that is not a constant."""
    tests = [node for node, _ in functions(path) if node.name.startswith("test_")]
    assert not [node.name for node in tests if not ast.get_docstring(node)]
    assert not [node.name for node in tests if not asserts(node)]
    constant = [
        n for node in tests for n in ast.walk(node) if isinstance(n, ast.Assert) and isinstance(n.test, ast.Constant)
    ]
    assert not constant


@pytest.mark.parametrize("path", TESTS, ids=name_of)
def test_no_test_sleeps(path):
    """Time is injected; a test that sleeps is slow or flaky."""
    calls = [
        ast.unparse(n.func) for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.Call)
    ]
    assert not {"time.sleep", "sleep", "asyncio.sleep"} & set(calls)


def test_no_committed_file_names_a_machine():
    """No committed file holds a path of somebody's machine."""
    found = [
        f"{name_of(p)}:{number}"
        for p in committed()
        for number, line in enumerate(p.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]
    assert not found


def test_nothing_is_left_for_later():
    """What is not done is in an issue, not in a comment."""
    later = re.compile(r"#.*\b(TODO|FIXME|XXX)\b|\braise NotImplementedError\b")
    found = [
        f"{name_of(p)}:{number}"
        for p in LIBRARY
        for number, line in enumerate(p.read_text(encoding="utf-8").splitlines(), 1)
        if later.search(line)
    ]
    assert not found
