"""Rows of JSON lines, CSV and Parquet, plain and gzip, with their places."""

from __future__ import annotations

import builtins
import csv
import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.errors import MissingExtra, RecordError
from stabilitykit.sources import rows
from stabilitykit.sources.rows import BadRow, Row, format_of, open_rows


def read(path, format_name=None):
    """Read a whole file."""
    opened = open_rows(path, format_name or format_of(path))
    return opened.columns, list(opened.items)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.jsonl", "jsonl"), ("a.ndjson.gz", "jsonl"), ("a.CSV", "csv"), ("a.b.csv.gz", "csv"), ("a.parquet", "parquet")],
)
def test_format_from_the_name(name, expected):
    """The ending tells the format; .gz may follow."""
    assert format_of(Path(name)) == expected


@pytest.mark.parametrize("name", ["log", "log.gz", "log.txt"])
def test_format_that_cannot_be_told(name):
    """An ending that says nothing is an error that says what to do."""
    with pytest.raises(RecordError, match="format:"):
        format_of(Path(name))


def test_json_lines(write):
    """Blank lines are skipped, numbers count lines, a bad line does not end the file."""
    path = write("a.jsonl", '{"a": 1}\n\n{"a": }\n[2]\n{"a": 3}')
    _, found = read(path)
    assert [r.line for r in found] == [1, 3, 4, 5]
    assert [type(r) for r in found] == [Row, BadRow, BadRow, Row]
    assert found[1].reason == "column 7: Expecting value"


def test_byte_order_mark_is_no_part_of_the_first_column(tmp_path):
    """Spreadsheets write one."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbfsession,x\r\nc,1\r\n")
    assert read(path)[0] == ("session", "x")


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_csv_with_any_usual_delimiter(write, mark):
    """Comma, semicolon and tab are told from the header."""
    path = write("a.csv", mark.join(("a", "b")) + "\n" + mark.join(("1", "2")) + "\n")
    assert read(path)[1][0].fields == {"a": "1", "b": "2"}


def test_csv_keeps_places_across_quoted_line_breaks(write):
    """A row is known by the line on which it ends."""
    path = write("a.csv", 'a,b\n1,"x\ny"\n2\n3,z\n')
    found = read(path)[1]
    assert [r.line for r in found] == [3, 4, 5]
    assert found[1] == BadRow(4, "1 cells, but the header has 2")


@pytest.mark.parametrize(("text", "reason"), [("", "no header"), ("a,a\n1,2\n", "twice")])
def test_csv_headers_that_cannot_be_read(write, text, reason):
    """An empty file and a double column are errors of the file."""
    with pytest.raises(RecordError, match=reason):
        read(write("a.csv", text))


def test_not_utf8_is_located(tmp_path):
    """The line with the byte is bad, the others are read."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n1,\xff\n3,4\n")
    found = read(path)[1]
    assert found[0] == BadRow(2, "not UTF-8: byte 0xFF at 2")
    assert found[1].fields == {"a": "3", "b": "4"}


def test_gzip_is_told_from_its_bytes(tmp_path):
    """A compressed file without the ending is read too."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(gzip.compress(b'{"a": 1}\n'))
    assert read(path)[1][0].fields == {"a": 1}


def test_damaged_gzip_ends_with_a_bad_row(tmp_path):
    """What came before the damage is read."""
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a": 1}\n' * 5)[:-9])
    *_, last = read(path)[1]
    assert isinstance(last, BadRow)
    assert "damaged from here on" in last.reason


def test_endless_line_is_bounded(write, monkeypatch):
    """A line over the limit is bad; the next one is read."""
    monkeypatch.setattr(rows, "MAX_LINE", 100)
    found = read(write("a.jsonl", '{"a": "' + "x" * 1000 + '"}\n{"a": 2}\n'))[1]
    assert isinstance(found[0], BadRow)
    assert found[1] == found[1]
    assert found[1].fields == {"a": 2}


def test_bytes_are_counted(write):
    """A progress bar gets every byte of the file."""
    path = write("a.jsonl", '{"a": 1}\n' * 1000)
    counted: list[int] = []
    list(open_rows(path, "jsonl", counted.append).items)
    assert sum(counted) == path.stat().st_size


def test_parquet(tmp_path):
    """Parquet gives columns and typed rows; rubbish is an error of the file."""
    pa = pytest.importorskip("pyarrow", reason="Parquet needs the extra `parquet`")
    pq = pytest.importorskip("pyarrow.parquet", reason="Parquet needs the extra `parquet`")
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1, None], "b": [[1.0], None]}), path)
    columns, found = read(path)
    assert columns == ("a", "b")
    assert [r.fields for r in found] == [{"a": 1, "b": [1.0]}, {"a": None, "b": None}]
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(RecordError, match="not Parquet"):
        read(tmp_path / "bad.parquet")


def test_parquet_without_its_package(write, monkeypatch):
    """Without pyarrow the error says which extra to install."""
    original = builtins.__import__

    def blocked(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    path = write("a.parquet", "x")
    monkeypatch.setattr(builtins, "__import__", blocked)
    with pytest.raises(MissingExtra, match=r"stabilitykit\[parquet\]"):
        read(path)


def test_missing_file(tmp_path):
    """A file that is not there is a located error."""
    with pytest.raises(RecordError, match="No such file"):
        read(tmp_path / "a.csv")


@given(st.binary(max_size=200), st.sampled_from(["a.jsonl", "a.csv", "a.jsonl.gz", "a.csv.gz"]), st.booleans())
def test_any_bytes_are_rows_or_located_errors(tmp_path_factory, content, name, zipped):
    """Whatever a file holds, reading it gives rows, bad rows, or one error of ours."""
    path = tmp_path_factory.mktemp("fuzz") / name
    path.write_bytes(gzip.compress(content) if zipped else content)
    try:
        _, found = read(path)
    except RecordError as error:
        found = [BadRow(1, str(error))]
    assert all(isinstance(r, (Row, BadRow)) and r.line > 0 for r in found)


lines = st.lists(st.text(st.characters(codec="utf-8"), max_size=30), max_size=6)


@given(lines)
def test_csv_survives_any_text(tmp_path_factory, cells):
    """What a csv writer wrote is read back."""
    path = tmp_path_factory.mktemp("fuzz") / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b"])
        writer.writerows([cell.replace("\0", ""), "x"] for cell in cells)
    found = [r for r in read(path)[1] if isinstance(r, Row)]
    assert [r.fields["b"] for r in found] == ["x"] * len(cells)
    wanted = [c.replace("\0", "") for c in cells]
    assert [r.fields["a"].split() for r in found] == [w.split() for w in wanted]
