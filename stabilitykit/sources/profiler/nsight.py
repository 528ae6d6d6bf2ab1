"""Tables of NVIDIA's profilers: ``nsys stats --format csv`` and ``ncu --csv``."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

import attrs

from stabilitykit.errors import RecordError
from stabilitykit.sample import Sample
from stabilitykit.sources.profiler.text import MAX_SAMPLES, Timed, gpu_name, in_order, open_text, sound

__all__ = ["read_tables"]

MAX_LINE = 1 << 20
_DURATIONS = ("gpu__time_duration.sum", "Duration")
"""Metrics of ncu that are a kernel's time, in one unit or another."""
_MICROSECONDS = {
    "ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6,
    "nsecond": 1e-3, "usecond": 1.0, "msecond": 1e3, "second": 1e6,
}  # fmt: skip
_NUMBER = re.compile(r"-?(\d+|\d{1,3}(,\d{3})+)(\.\d+)?([eE][-+]?\d+)?\Z", re.ASCII)
_HEAD = re.compile(r"(.+?) \((ns|us|ms|s)\)\Z")
_PLACE = re.compile(r"\((\d+)\)\Z")
_NOTHING = ("", "n/a", "nan")


class _Bad(ValueError):
    """A cell that is not what its column says; never shows what stood in it."""


@attrs.frozen
class _Row:
    """Cells of a line by the name of their column, and the microseconds of its unit."""

    cells: dict[str, str]
    units: dict[str, float]

    def us(self, name: str) -> float:
        """Give a time in microseconds."""
        return self.number(name) * self.units.get(name, 1e-3)

    def number(self, name: str) -> float:
        """Give a number, with or without separators of thousands."""
        text = self.cells[name].strip()
        if not _NUMBER.match(text):
            raise _Bad(f"`{name}` is no number")
        return float(text.replace(",", ""))

    def is_empty(self, name: str) -> bool:
        """Tell whether nothing was measured."""
        return self.cells[name].strip().lower() in _NOTHING


Reader = Callable[[_Row], Timed | None]


def _signals(end_us: float, device: str, **signals: float) -> Timed:
    return end_us, device, signals


def _kern_exec_trace(row: _Row) -> Timed:
    """Read one launch; where its kernel did not wait for the call's return, nsys gives no queue time: it is zero."""
    start, length = row.us("Kernel Start"), row.us("Kernel Dur")
    return _signals(
        start + length,
        gpu_name(int(row.number("DevId"))),
        kernel_us=length,
        launch_host_us=row.us("API Dur"),
        launch_queue_us=0.0 if row.is_empty("Queue Dur") else row.us("Queue Dur"),
        launch_sync_us=0.0,
        launch_total_us=row.us("Total Dur") - length,
    )


def _kern_exec_sum(row: _Row) -> Timed:
    """Read the means of one kernel; queue times are means of the launches that had one."""
    queue = 0.0 if row.is_empty("QAvg") else row.us("QAvg") * row.number("QCount") / row.number("Count")
    device = int(row.number("DevId")) if "DevId" in row.cells else 0
    return _signals(
        0.0,
        gpu_name(device),
        kernel_us=row.us("KAvg"),
        launch_host_us=row.us("AAvg"),
        launch_queue_us=queue,
        launch_sync_us=0.0,
        launch_total_us=row.us("TAvg") - row.us("KAvg"),
    )


def _gpu_trace(row: _Row) -> Timed | None:
    if row.cells["Name"].startswith("[CUDA mem"):
        return None
    place = _PLACE.search(row.cells.get("Device", ""))
    length = row.us("Duration")
    return _signals(row.us("Start") + length, gpu_name(place[1] if place else 0), kernel_us=length)


def _kern_sum(row: _Row) -> Timed:
    return _signals(0.0, "gpu-0", kernel_us=row.us("Avg"))


def _api_sum(row: _Row) -> Timed | None:
    name = row.cells["Name"]
    if not name.startswith("cu"):
        return None
    if "Synchronize" in name:
        return _signals(0.0, "gpu-0", launch_sync_us=row.us("Avg"))
    return _signals(0.0, "gpu-0", launch_host_us=row.us("Avg")) if "Launch" in name else None


def _ncu_long(row: _Row) -> Timed | None:
    if row.cells["Metric Name"] not in _DURATIONS or row.is_empty("Metric Value"):
        return None
    unit = _MICROSECONDS.get(row.cells["Metric Unit"])
    if unit is None:
        raise _Bad("`Metric Unit` is no unit of time")
    return _signals(0.0, _ncu_device(row), kernel_us=row.number("Metric Value") * unit)


def _ncu_wide(row: _Row) -> Timed | None:
    if row.is_empty(_DURATIONS[0]):
        return None
    return _signals(0.0, _ncu_device(row), kernel_us=row.us(_DURATIONS[0]))


def _ncu_device(row: _Row) -> str:
    return gpu_name(row.cells.get("Device") or 0)


@attrs.frozen
class _Kind:
    """A table: the columns that tell it, how a row is read, whether rows have times, which columns name a row once."""

    columns: frozenset[str]
    read: Reader
    has_times: bool = False
    once: tuple[str, ...] = ()


def _kind(columns: str, read: Reader, **more: bool | tuple[str, ...]) -> _Kind:
    return _Kind(frozenset(columns.split("|")), read, **more)  # type: ignore[arg-type]


_KINDS = (
    _kind("API Start|API Dur|Queue Dur|Kernel Start|Kernel Dur|Total Dur|DevId", _kern_exec_trace, has_times=True),
    _kind("Count|QCount|AAvg|QAvg|KAvg|TAvg|Kernel Name", _kern_exec_sum),
    _kind("Start|Duration|CorrId|Name", _gpu_trace, has_times=True),
    _kind("Instances|Avg|Name", _kern_sum),
    _kind("Num Calls|Avg|Name", _api_sum),
    _kind("ID|Kernel Name|Metric Name|Metric Unit|Metric Value", _ncu_long, once=("Process ID", "ID")),
    _kind("ID|Kernel Name|gpu__time_duration.sum", _ncu_wide),
)


def read_tables(path: Path) -> list[Sample]:
    """Read the tables of a profiler's CSV output, between whatever else it printed; see the package.

    ``nsys`` does not say which part of a queue time was a synchronising call's: ``launch_sync_us`` of its launches is
    0, and the queue has it. A summary knows no single kernels: its samples are means, without times.

    Raises
    ------
    RecordError
        See ``read_profile``.
    """
    rows: list[Timed] = []
    plain: list[Sample] = []
    seen: set[tuple[str | None, ...]] = set()
    found = False
    for line, kind, row in _rows(path):
        found = True
        if row is None or (kind.once and not _is_first(kind, row, seen)):
            continue
        try:
            read = kind.read(row)
        except (_Bad, ZeroDivisionError, OverflowError) as error:
            raise RecordError(f"{path}:{line}: {error}") from None
        if read is not None and kind.has_times:
            rows.append(read)
        elif read is not None and (signals := sound(read[2])):
            plain.append(Sample(device=read[1], signals=signals))
        if len(rows) + len(plain) > MAX_SAMPLES:
            raise RecordError(f"{path}:{line}: more than {MAX_SAMPLES} rows")
    if not found:
        raise RecordError(f"{path}: neither a Chrome trace nor a table of nsys or ncu about kernels")
    return [*in_order(rows), *plain]


def _is_first(kind: _Kind, row: _Row, seen: set[tuple[str | None, ...]]) -> bool:
    """Tell a kernel's first duration from the same under another name."""
    if row.cells["Metric Name"] not in _DURATIONS:
        return False
    key = tuple(row.cells.get(name) for name in kind.once)
    is_first = key not in seen
    seen.add(key)
    return is_first


def _rows(path: Path) -> Iterator[tuple[int, _Kind, _Row | None]]:
    """Give the rows of all tables, and one ``None`` for each header; an empty line ends a table."""
    kind: _Kind | None = None
    columns: list[str] = []
    units: dict[str, float] = {}
    with open_text(path) as stream:
        reader = csv.reader(_lines(stream, path))
        while True:
            try:
                cells = next(reader, None)
            except csv.Error as error:
                raise RecordError(f"{path}:{reader.line_num}: {error}") from None
            if cells is None:
                return
            names = [_HEAD.sub(r"\1", cell.strip()) for cell in cells]
            is_header = next((k for k in _KINDS if k.columns <= set(names)), None)
            if is_header is not None:
                kind, columns, units = is_header, names, _units(cells)
                yield reader.line_num, kind, None
            elif not cells or kind is None:
                kind = None
            elif len(cells) != len(columns):
                if len(cells) == 1 and not _NUMBER.match(cells[0]):  # a message printed behind the table
                    kind = None
                    continue
                raise RecordError(f"{path}:{reader.line_num}: {len(cells)} cells, but the header has {len(columns)}")
            elif "ID" in kind.columns and not cells[columns.index("ID")]:
                units = {n: _MICROSECONDS[c] for n, c in zip(columns, cells, strict=True) if c in _MICROSECONDS}
            else:
                yield reader.line_num, kind, _Row(dict(zip(columns, cells, strict=True)), units)


def _units(cells: Sequence[str]) -> dict[str, float]:
    return {m[1]: _MICROSECONDS[m[2]] for m in map(_HEAD.match, map(str.strip, cells)) if m}


def _lines(stream: IO[str], path: Path) -> Iterator[str]:
    number = 0
    while line := stream.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise RecordError(f"{path}:{number}: a line of more than {MAX_LINE >> 20} MiB")
        yield line.replace("\0", "")
