"""Rows into turns and samples."""

from __future__ import annotations

import csv
import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.errors import PackError, RecordError
from stabilitykit.sample import Sample
from stabilitykit.sources.mapping import read_mapping
from stabilitykit.sources.recording import LogFile
from stabilitykit.turn import Turn
from stabilitykit.turn_record import TurnRecord

MAPPING = """\
session: {column: who}
turn: {column: k}
timestamp: {column: at, unit: s}
missing: [-1]
signals:
  itl_ms: {column: tpot, unit: s}
  kv_usage_ratio: {column: kv, unit: "%"}
  finish_reason: {column: why}
  is_history_truncated: {column: cut}
"""
ROWS = [
    {"who": "a", "k": 1, "at": 0.5, "tpot": 0.0412, "kv": 7.0, "why": "stop", "cut": True},
    {"who": "a", "k": 2, "at": 1.5, "tpot": -1.0, "kv": None, "why": None, "cut": False},
    {"who": "b", "k": 9, "at": 2.5, "tpot": 0.1, "kv": 33.3, "why": "length", "cut": None},
]


def entries(path, mapping=None) -> list[Any]:
    """Read a file."""
    return list(LogFile(path, mapping).entries())


def dumped(path, mapping):
    """Give the records of a file's entries."""
    return [TurnRecord.dump(entry) for entry in entries(path, mapping)]


def write_all(folder, rows):
    """Write rows as JSON lines, CSV, gzip and, where possible, Parquet."""
    text = "".join(json.dumps(r) + "\n" for r in rows)
    (folder / "a.jsonl").write_text(text, encoding="utf-8")
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    with (folder / "c.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(ROWS[0]))
        writer.writeheader()
        writer.writerows([{k: "" if v is None else v for k, v in r.items()} for r in rows])
    (folder / "d.csv.gz").write_bytes(gzip.compress((folder / "c.csv").read_bytes()))
    return [folder / n for n in ("a.jsonl", "b.jsonl.gz", "c.csv", "d.csv.gz")]


@pytest.mark.capability("issue 2 §7: JSON lines, CSV, Parquet and gzip of one log are one log, through a mapping")
def test_all_formats_give_the_same_turns(write, tmp_path):
    """JSON lines, CSV, Parquet and gzip of one log are one log."""
    mapping = read_mapping(write("m.yaml", MAPPING))
    paths = write_all(tmp_path, ROWS)
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        pass
    else:
        pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "e.parquet")
        paths.append(tmp_path / "e.parquet")
    expected = dumped(paths[0], mapping)
    assert expected[0]["itl_ms"] == 41.2
    assert expected[0]["kv_usage_ratio"] == 0.07
    assert "itl_ms" not in expected[1]
    assert expected[2] == {
        "session_id": "b", "turn_id": 9, "timestamp_s": 2.5, "itl_ms": 100.0, "kv_usage_ratio": 0.333,
        "finish_reason": "length",
    }  # fmt: skip
    assert all(dumped(path, mapping) == expected for path in paths[1:])


@given(st.lists(st.tuples(st.floats(0, 1e6), st.one_of(st.none(), st.floats(-1, 150))), min_size=1, max_size=5))
def test_any_numbers_agree_between_formats(tmp_path_factory, numbers):
    """No number is read differently from text and from JSON."""
    folder = tmp_path_factory.mktemp("rows")
    rows = [
        {"who": "s", "k": k + 1, "at": 1.0, "tpot": t, "kv": kv, "why": "stop", "cut": True}
        for k, (t, kv) in enumerate(numbers)
    ]
    (folder / "m.yaml").write_text(MAPPING)
    mapping = read_mapping(folder / "m.yaml")
    first, *others = write_all(folder, rows)
    assert all(dumped(path, mapping) == dumped(first, mapping) for path in others)


def test_samples(write):
    """Rows of `kind: sample` become samples; text fields are text."""
    text = "kind: sample\nreplica: {column: pod}\nsignals:\n  waiting_requests: {column: w}\n"
    log = write("s.csv", "pod,w\n7,3\n")
    (sample,) = LogFile(log, read_mapping(write("m.yaml", text))).entries()
    assert isinstance(sample, Sample)
    assert (sample.replica, sample.signals) == ("7", {"waiting_requests": 3.0})


def test_nested_fields(write):
    """A path of names reaches into JSON."""
    text = "session: {column: id}\nsignals:\n  input_tokens: {column: usage.prompt_tokens}\n"
    log = write("a.jsonl", '{"id": "c", "usage": {"prompt_tokens": 12}}\n{"id": "c", "usage": null}\n')
    first, second = entries(log, read_mapping(write("m.yaml", text)))
    assert first.input_tokens == 12.0
    assert "input_tokens" not in TurnRecord.dump(second)


def test_named_columns(write):
    """Without a mapping the columns have the names of a Turn; observe lines are samples; receipts are kept."""
    lines = [
        {"session_id": "c", "turn_id": 1, "itl_ms": 3, "extra": {"mood": 1}, "weird": 1},
        {"observe": {"replica": "r", "timestamp_s": 1, "waiting_requests": 2}},
        {"session_id": "c", "turn_id": 2, "applied": {"session_id": "c", "turn_id": 1, "done": ["trim_context"]}},
    ]
    log = LogFile(write("a.jsonl", "".join(json.dumps(x) + "\n" for x in lines)))
    found: list[Any] = list(log.entries())
    turn, sample, last = found
    assert isinstance(turn, Turn)
    assert turn.itl_ms == 3.0
    assert sample.timestamp_s == 1.0
    assert last.applied.done == ("trim_context",)
    assert log.unknown == {"mood": "", "weird": ""}


@pytest.mark.parametrize(("of", "tenant"), [({}, "one"), ({"tenant": "two"}, "two"), ({"tenant": ""}, "")])
def test_whose_receipt(write, of, tenant):
    """A receipt that does not say is of its row's tenant."""
    applied = {"session_id": "c", "turn_id": 1, "done": [], **of}
    row = {"session_id": "c", "tenant": "one", "turn_id": 2, "applied": applied}
    (turn,) = LogFile(write("a.jsonl", json.dumps(row) + "\n")).entries()
    assert isinstance(turn, Turn)
    assert turn.applied is not None
    assert turn.applied.tenant == tenant


def test_named_csv_needs_a_session(write):
    """A CSV file without `session_id` and without a mapping cannot be read."""
    with pytest.raises(RecordError, match="give a mapping"):
        list(LogFile(write("a.csv", "x,y\n1,2\n")).entries())


def test_missing_columns(write):
    """A declared column that is missing is an error; one that JSON lines never have is remembered."""
    mapping = read_mapping(write("m.yaml", MAPPING))
    with pytest.raises(PackError, match="has no column `tpot`"):
        list(LogFile(write("a.csv", "who,k,at,kv,why,cut\n"), mapping).entries())
    log = LogFile(write("a.jsonl", '{"who": "a", "k": 1}\n'), mapping)
    assert len(list(log.entries())) == 1
    assert log.absent == {"at": 3, "tpot": 6, "kv": 7, "why": 8, "cut": 9}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"turn_id": 1}', "no session"),
        ('{"session_id": ["a"]}', "session_id: a text is wanted"),
        ('{"session_id": "a", "revision": 1.5}', "revision: not a whole number"),
        ('{"session_id": "a", "timestamp_s": "noon"}', "timestamp_s: not a number"),
        ('{"session_id": "a", "applied": {"done": 1}}', "applied: not a receipt"),
        ('{"session_id": "a", "itl_ms": "soon"}', "itl_ms: not a number"),
        ('{"session_id": "a", "turn_id": -1}', "turn_id: it must be in"),
        ('{"session_id": "' + "x" * 129 + '"}', "session_id: it must have at most 128 bytes"),
        ('{"observe": {"itl_ms": 3}}', "itl_ms: a session's signal"),
    ],
)
def test_bad_rows(write, line, reason):
    """A bad row raises with file and line, or is counted."""
    path = write("a.jsonl", '{"session_id": "ok"}\n' + line + "\n")
    with pytest.raises(RecordError, match=rf"a\.jsonl:2: {reason}"):
        list(LogFile(path).entries())
    going = LogFile(path, keep_going=True)
    assert len(list(going.entries())) == 1
    assert (going.bad_count, going.bad[0].line) == (1, 2)
