"""`mapping.yaml`: every mistake is located."""

from __future__ import annotations

import pytest

from stabilitykit.errors import PackError
from stabilitykit.signals import SignalSpec
from stabilitykit.sources.mapping import read_mapping

GOOD = """\
format: csv
session: {column: Session ID}
turn: {column: turn}
timestamp: {column: Timestamp, unit: ms}
missing: [-1, "n/a"]
signals:
  itl_ms: {column: tpot, unit: s}
  kv_usage_ratio: {column: gpu_kvcache_usage, unit: "%"}
  waiting_requests: pending
  error: {column: code, words: {"429": rate_limited}}
  context_window_tokens: {const: 4096}
  gpu_memory_ratio: {column: used, over: total}
"""


def problems(write, text, **options):
    """Give the problems of a mapping."""
    with pytest.raises(PackError) as found:
        read_mapping(write("m.yaml", text), **options)
    return found.value.problems


@pytest.mark.capability("issue 2 §7: a mapping gives each signal its column and unit; its mistakes are located")
def test_good_mapping(write):
    """A whole mapping is read."""
    mapping = read_mapping(write("m.yaml", GOOD))
    assert (mapping.kind, mapping.format) == ("turn", "csv")
    assert mapping.signals["itl_ms"].unit == "s"
    assert mapping.signals["waiting_requests"].name == "pending"
    assert mapping.signals["context_window_tokens"].const == 4096
    assert mapping.fields["timestamp"].unit == "ms"
    assert mapping.columns["total"] == 12


@pytest.mark.capability("issue 2 §7: a mapping gives each signal its column and unit; its mistakes are located")
@pytest.mark.parametrize(
    ("old", "new", "code", "line", "hint"),
    [
        ("itl_ms", "itl_sm", "SK301", 7, "did you mean `itl_ms`?"),
        ("unit: s}", "unit: bytes}", "SK410", 7, ""),
        ("unit: s}", "unit: sec}", "SK411", 7, ""),
        ("tpot, unit: s", "tpot", "SK411", 7, "`unit: ms`"),
        (', unit: "%"', "", "SK411", 8, '`unit: ratio`, or `unit: "%"`'),
        ("rate_limited", "rate_limit", "SK416", 10, "did you mean `rate_limited`?"),
        ("format: csv", "format: xls", "SK416", 1, "one of jsonl, csv, parquet"),
        ("session: {column: Session ID}", "session: {}", "SK202", 2, ""),
        ("session: {column: Session ID}", "", "SK202", 1, "`session: {column: ...}`"),
        ("session:", "sesion:", "SK201", 2, "did you mean `session`?"),
        ("Timestamp, unit: ms", "Timestamp", "SK411", 4, "one of s, ms, us, ns, datetime"),
        ("const: 4096", "const: many", "SK203", 11, ""),
        ("const: 4096", "const: 4096, column: x", "SK202", 11, ""),
        ("{column: tpot, unit: s}", "{colum: tpot, unit: s}", "SK201", 7, "did you mean `column`?"),
        ('[-1, "n/a"]', "[[1]]", "SK203", 5, ""),
        ("waiting_requests: pending", "waiting_requests: 7", "SK203", 9, ""),
        ("format: csv", "format: &x csv", "SK104", 1, ""),
    ],
)
def test_mistakes_are_located(write, old, new, code, line, hint):
    """File, line, code and, where there is one, the nearest name."""
    found = problems(write, GOOD.replace(old, new, 1))
    assert any(p.code == code and p.line == line and hint in p.hint for p in found), found


def test_sample_mapping(write):
    """Rows that are samples take replica or device signals only."""
    text = "kind: sample\nreplica: {const: r1}\nsignals:\n  waiting_requests: {column: w}\n"
    assert read_mapping(write("m.yaml", text)).kind == "sample"
    (found,) = problems(write, text + "  itl_ms: {column: x, unit: ms}\n")
    assert (found.code, found.line) == ("SK301", 5)
    both = read_mapping(write("m.yaml", text + "  gpu_sm_ratio: {column: x, unit: ratio}\n"))
    assert len(both.signals) == 2


def test_declared_signals(write):
    """Signals that a pack declares may be mapped."""
    text = "session: {const: c}\nsignals:\n  mood: {column: m, unit: ratio}\n"
    mood = SignalSpec("mood", "ratio", "session", "how it feels", "number", 0, 1)
    assert "mood" in read_mapping(write("m.yaml", text), declared={"mood": mood}).signals
    (found,) = problems(write, text)
    assert found.code == "SK301"


def test_columns_that_the_log_lacks(write):
    """A column that the header does not have is located in the mapping."""
    mapping = read_mapping(write("m.yaml", GOOD))
    present = ("tpott", *(n for n in mapping.columns if n != "tpot"))
    with pytest.raises(PackError) as found:
        mapping.check_columns(present, "log.csv")
    (one,) = found.value.problems
    assert (one.line, one.hint) == (7, "did you mean `tpott`?")


def test_missing_and_empty_files(write, tmp_path):
    """No file and an empty file are errors too."""
    with pytest.raises(PackError, match="No such file"):
        read_mapping(tmp_path / "none.yaml")
    assert problems(write, "")[0].code == "SK101"
    assert {p.code for p in problems(write, "kind: turn\n")} == {"SK202"}


def test_the_page_on_mappings_is_right(write, root):
    """Every mapping in the how-to page can be read as it stands."""
    page = (root / "docs" / "how-to" / "map-a-log.md").read_text(encoding="utf-8")
    blocks = [part.split("```", 1)[0] for part in page.split("```yaml\n")[1:]]
    assert [read_mapping(write("m.yaml", block)).kind for block in blocks] == ["turn", "sample"]
