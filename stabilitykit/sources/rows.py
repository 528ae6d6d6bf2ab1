"""Rows of a log file: JSON lines, CSV or Parquet, plain or gzip, each row with its place."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import attrs

from stabilitykit.errors import MissingExtra, RecordError

__all__ = ["FORMATS", "MAX_LINE", "BadRow", "Row", "Rows", "format_of", "open_rows"]

FORMATS = ("jsonl", "csv", "parquet")
MAX_LINE = 16 << 20
"""Bytes of one line; a longer one is no record."""
_ENDINGS = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
_BATCH = 4096


@attrs.frozen(eq=False)
class Row:
    """One record: its line (of Parquet: its number) and its fields."""

    line: int
    fields: dict[str, Any]


@attrs.frozen
class BadRow:
    """A line that is no record, and why."""

    line: int
    reason: str


@attrs.frozen(eq=False)
class Rows:
    """A file being read.

    Parameters
    ----------
    columns
        Names of its columns where the file declares them (CSV, Parquet), else ``None``.
    items
        Its rows, read lazily.
    """

    columns: tuple[str, ...] | None
    items: Iterator[Row | BadRow]


class _Counted(io.RawIOBase):
    """A raw file that tells how many bytes were read from it."""

    def __init__(self, raw: io.FileIO, advance: Callable[[int], object]) -> None:
        self._raw, self._advance = raw, advance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        count = self._raw.readinto(buffer)
        self._advance(count or 0)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


def format_of(path: Path) -> str:
    """Tell the format of a file from its name; ``.gz`` may follow.

    Raises
    ------
    RecordError
        An ending that says nothing.
    """
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    found = _ENDINGS.get(suffixes[-1]) if suffixes else None
    if found is None:
        raise RecordError(f"{path}: cannot tell its format from its name: say `format:` in the mapping")
    return found


def open_rows(path: Path, format_name: str, advance: Callable[[int], object] = lambda count: None) -> Rows:
    """Open a log file.

    Parameters
    ----------
    path
        The file; gzip is recognised by its first bytes.
    format_name
        One of ``FORMATS``.
    advance
        Told the bytes of the file as they are read.

    Raises
    ------
    RecordError
        It cannot be opened, or is damaged as a whole.
    MissingExtra
        Parquet without pyarrow.
    """
    try:
        raw = open(path, "rb", buffering=0)  # noqa: SIM115 - lives as long as the generator that reads it
        is_gzip = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror or type(error).__name__}") from None
    if format_name == "parquet" and not is_gzip:
        raw.close()
        return _parquet(path, advance)
    stream: IO[bytes] = io.BufferedReader(_Counted(raw, advance), 1 << 16)
    if is_gzip:
        stream = gzip.GzipFile(fileobj=stream)  # type: ignore[assignment]
    if format_name == "parquet":
        return _parquet(io.BytesIO(_inflate(path, stream)), advance)
    lines = _lines(stream)
    if format_name == "jsonl":
        return Rows(None, _json_rows(lines))
    return _csv(path, lines)


def _inflate(path: Path, stream: IO[bytes]) -> bytes:
    try:
        with stream:
            return stream.read()
    except (OSError, EOFError, zlib.error) as error:
        raise RecordError(f"{path}: damaged gzip: {error}") from None


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, str | BadRow]]:
    """Give numbered lines; damage ends the file, and says where."""
    number = 0
    with stream:
        while True:
            number += 1
            try:
                line = stream.readline(MAX_LINE + 1)
            except (OSError, EOFError, zlib.error) as error:
                yield number, BadRow(number, f"the file is damaged from here on: {error}")
                return
            if not line:
                return
            if len(line) > MAX_LINE:
                yield number, BadRow(number, f"a line of more than {MAX_LINE >> 20} MiB")
                while line and not line.endswith(b"\n"):
                    line = stream.readline(MAX_LINE)
                continue
            try:
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                yield number, BadRow(number, f"not UTF-8: byte 0x{line[error.start]:02X} at {error.start}")


def _json_rows(lines: Iterator[tuple[int, str | BadRow]]) -> Iterator[Row | BadRow]:
    for number, line in lines:
        if isinstance(line, BadRow):
            yield line
        elif line.strip():
            yield _json_row(number, line)


def _json_row(number: int, line: str) -> Row | BadRow:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        return BadRow(number, f"column {error.colno}: {error.msg}")
    except (RecursionError, ValueError) as error:  # nested too deep; a number of thousands of digits
        return BadRow(number, f"not JSON: {type(error).__name__}")
    if not isinstance(value, dict):
        return BadRow(number, f"a record is an object, not {type(value).__name__}")
    return Row(number, value)


def _csv(path: Path, lines: Iterator[tuple[int, str | BadRow]]) -> Rows:
    bad: list[BadRow] = []

    def texts() -> Iterator[str]:
        for _, line in lines:
            if isinstance(line, BadRow):
                bad.append(line)
                yield "\n"  # keeps the reader's count of lines
            else:
                yield line.replace("\0", "")

    first = next((t for t in texts()), "")
    if bad or not first.strip():
        raise RecordError(f"{path}:1: {bad[0].reason if bad else 'no header line'}")
    mark = "\t" if first.count("\t") > first.count(",") else ";" if first.count(";") > first.count(",") else ","
    columns = tuple(name.strip() for name in next(csv.reader([first], delimiter=mark)))
    double = next((c for k, c in enumerate(columns) if c in columns[:k]), None)
    if double is not None:
        raise RecordError(f"{path}:1: the column {double!r} stands in the header twice")
    return Rows(columns, _csv_rows(csv.reader(texts(), delimiter=mark, strict=True), columns, bad))


def _csv_rows(reader: Any, columns: tuple[str, ...], bad: list[BadRow]) -> Iterator[Row | BadRow]:
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            yield from bad
            return
        except csv.Error as error:
            yield BadRow(reader.line_num + 1, str(error))
            continue
        if bad:
            yield from bad
            bad.clear()
        elif cells and len(cells) != len(columns):
            yield BadRow(reader.line_num + 1, f"{len(cells)} cells, but the header has {len(columns)}")
        elif cells:
            yield Row(reader.line_num + 1, dict(zip(columns, cells, strict=True)))


def _parquet(source: Path | io.BytesIO, advance: Callable[[int], object]) -> Rows:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtra("pyarrow", "parquet") from None
    size = source.stat().st_size if isinstance(source, Path) else 0
    try:
        file = pq.ParquetFile(source)
    except (pa.ArrowException, OSError) as error:
        name = source if isinstance(source, Path) else "the file"
        raise RecordError(f"{name}: not Parquet: {str(error).splitlines()[0]}") from None

    def rows() -> Iterator[Row | BadRow]:
        number = 0
        share = size / max(1, file.metadata.num_rows)
        try:
            for batch in file.iter_batches(batch_size=_BATCH):
                for fields in batch.to_pylist():
                    number += 1
                    yield Row(number, fields)
                advance(int(share * batch.num_rows))
        except (pa.ArrowException, OSError) as error:
            yield BadRow(number + 1, f"the file is damaged from here on: {str(error).splitlines()[0]}")

    return Rows(tuple(file.schema_arrow.names), rows())
