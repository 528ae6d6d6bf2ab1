from __future__ import annotations

import pytest

from stabilitykit.errors import PackError, Problem
from stabilitykit.rules.files.locate import BAD, MAX_PROBLEMS, Findings, Place
from stabilitykit.rules.files.reader import read


def place(file: str = "a.yaml") -> Place:
    """Give the place of a file with many lines."""
    return Place(read(b"".join(b"k%d: v\n" % i for i in range(1000)), file))


def test_problems_come_by_position_each_once_at_most_50_of_a_file():
    """A hostile file cannot make the report long, nor hide the first problem behind later ones."""
    findings = Findings()
    where = place()
    for i in reversed(range(100)):
        findings.add(where.child(f"k{i}"), "SK201", "wrong", key=True)
        findings.add(where.child(f"k{i}"), "SK201", "wrong", key=True)
    findings.add(place("b.yaml").child("k7"), "SK201", "wrong")
    found = findings.problems()
    assert [(p.file, p.line) for p in found[:MAX_PROBLEMS]] == [("a.yaml", i + 1) for i in range(50)]
    assert [(p.file, p.line, p.col) for p in found[MAX_PROBLEMS:]] == [("b.yaml", 8, 5)]


def test_what_is_kept_is_bounded():
    """Ten thousand mistakes do not cost ten thousand snippets."""
    findings = Findings()
    where = place()
    for i in range(10_000):
        findings.add(where.child(f"k{i % 1000}"), "SK201", f"wrong {i}")
    assert len(findings._by_file["a.yaml"]) == 200


def test_nothing_found_raises_nothing():
    """Only a problem raises."""
    findings = Findings()
    findings.raise_all()
    findings.extend([Problem("x", 1, 1, "SK321", "no")])
    with pytest.raises(PackError, match="SK321"):
        findings.raise_all()


def test_a_place_knows_file_and_line():
    """Paths lead to values; the mark of something reported says so."""
    assert (place().child("k3").file, place().child("k3").line) == ("a.yaml", 4)
    assert repr(BAD) == "BAD"
