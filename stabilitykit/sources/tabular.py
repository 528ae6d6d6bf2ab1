"""Rows of anyone's log into turns and samples, by a mapping or by the names of their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from stabilitykit.decision import Receipt
from stabilitykit.engine.identity import check_id, check_number
from stabilitykit.errors import RecordError, TurnError
from stabilitykit.sample import Sample
from stabilitykit.signals import CATALOGUE, SignalSpec
from stabilitykit.sources.cells import (
    ABSENT,
    CellError,
    Column,
    as_text,
    read_count,
    read_signal,
    read_time,
)
from stabilitykit.sources.mapping import LogMapping
from stabilitykit.sources.rows import BadRow, Row, Rows
from stabilitykit.turn import Turn

__all__ = ["Located", "mapped_entries", "named_entries"]

_FIELDS = {
    "session": "session_id", "tenant": "tenant", "replica": "replica", "device": "device", "model": "model",
    "turn": "turn_id", "revision": "revision", "timestamp": "timestamp_s",
    "replica_sample": "replica_sample_s", "device_sample": "device_sample_s",
}  # fmt: skip
_COUNTS = ("turn_id", "revision")
_TIMES = ("timestamp_s", "replica_sample_s", "device_sample_s")
_SAMPLE_FIELDS = ("replica", "device", "tenant", "timestamp_s")
_IDENTITY = tuple(_FIELDS.values())
Refuse = Callable[[int, str], None]


@attrs.frozen(eq=False)
class Located:
    """A turn or a sample, and the line it came from."""

    line: int
    entry: Turn | Sample


def mapped_entries(
    rows: Rows, mapping: LogMapping, declared: Mapping[str, SignalSpec], refuse: Refuse
) -> Iterator[Located]:
    """Read rows by a mapping.

    Parameters
    ----------
    declared
        Signals of the pack beyond the catalogue.
    refuse
        Called with line and reason of every row that is left out; may raise.
    """
    specs = {name: CATALOGUE.get(name) or declared[name] for name in mapping.signals}

    def build(row: Row) -> Turn | Sample:
        given = {_FIELDS[name]: _field(_FIELDS[name], column, row) for name, column in mapping.fields.items()}
        signals = {name: _signal(name, row.fields, column, specs[name]) for name, column in mapping.signals.items()}
        return _entry(mapping.kind == "sample", given, signals)

    return _each(rows, build, refuse)


def named_entries(
    rows: Rows, declared: Mapping[str, SignalSpec], refuse: Refuse, unknown: set[str]
) -> Iterator[Located]:
    """Read rows whose columns have the names of a Turn; ``{"observe": {...}}`` is a sample.

    Parameters
    ----------
    declared, refuse
        As for ``mapped_entries``.
    unknown
        Takes the names of columns that mean nothing.

    Raises
    ------
    RecordError
        The file declares its columns and none of them is ``session_id``.
    """
    if rows.columns is not None and "session_id" not in rows.columns:
        raise RecordError("no column `session_id`: give a mapping that says what the columns are")
    columns: dict[str, Column] = {}
    specs = {**CATALOGUE, **declared}

    def build(row: Row) -> Turn | Sample:
        is_sample = isinstance(row.fields.get("observe"), Mapping)
        fields = row.fields["observe"] if is_sample else row.fields
        given: dict[str, Any] = {}
        signals: dict[str, Any] = {}
        inside = fields.get("extra")
        for name, raw in (fields if not isinstance(inside, Mapping) else {**fields, **inside}).items():
            column = columns.get(name) or columns.setdefault(name, Column(name=name))
            if name in _IDENTITY:
                given[name] = _value_of_field(name, column, raw)
            elif name in specs and is_sample and specs[name].scope == "session":
                raise CellError(f"{name}: a session's signal, it comes with a turn")
            elif name in specs:
                signals[name] = _signal(name, fields if name in fields else inside, column, specs[name])
            elif name == "applied":
                given[name] = _receipt(raw, fields.get("tenant"))
            elif name != "extra":
                unknown.add(name)
        return _entry(is_sample, given, signals)

    return _each(rows, build, refuse)


def _each(rows: Rows, build: Callable[[Row], Turn | Sample], refuse: Refuse) -> Iterator[Located]:
    for row in rows.items:
        if isinstance(row, BadRow):
            refuse(row.line, row.reason)
            continue
        try:
            entry = build(row)
        except CellError as error:
            refuse(row.line, str(error))
            continue
        yield Located(row.line, entry)


def _entry(is_sample: bool, given: dict[str, Any], signals: dict[str, Any]) -> Turn | Sample:
    given = {name: value for name, value in given.items() if value is not ABSENT}
    signals = {name: value for name, value in signals.items() if value is not ABSENT}
    if is_sample:
        known = {name: value for name, value in given.items() if name in _SAMPLE_FIELDS}
        return Sample(signals=signals, **known)
    if "session_id" not in given:
        raise CellError("no session")
    extra = {name: signals.pop(name) for name in list(signals) if name not in CATALOGUE}
    return Turn(**given, **signals, extra=extra or None)


def _field(name: str, column: Column, row: Row) -> Any:
    return _value_of_field(name, column, column.find(row.fields))


def _value_of_field(name: str, column: Column, raw: Any) -> Any:
    if raw is None or raw is ABSENT or raw == "" or (isinstance(raw, float) and raw != raw):
        return ABSENT
    try:
        if name in _COUNTS:
            number = read_count(raw)
            check_number(number, "it")
            return number
        if name in _TIMES:
            return read_time(raw, column)
        if isinstance(raw, (list, dict)):
            raise CellError(f"a text is wanted, not a {type(raw).__name__}")
        text = as_text(raw)
        check_id(text, "it")
        return text
    except (CellError, TurnError) as error:
        raise CellError(f"{name}: {error}") from None


def _signal(name: str, fields: Any, column: Column, spec: SignalSpec) -> Any:
    try:
        return read_signal(column.find(fields), column, spec, fields)
    except CellError as error:
        raise CellError(f"{name}: {error}") from None


def _receipt(raw: Any, tenant: Any) -> Any:
    """Read a receipt; one that does not say whose it is belongs to the row's tenant."""
    if raw is None:
        return ABSENT
    try:
        done = raw["done"]
        if isinstance(done, list) and all(isinstance(name, str) for name in done):
            whose = _value_of_field("tenant", Column(name="tenant"), raw.get("tenant", tenant))
            told = (str(raw["session_id"]), int(raw["turn_id"]), tuple(done))
            return Receipt(*told, tenant="" if whose is ABSENT else whose)
    except (KeyError, TypeError, ValueError):
        pass
    raise CellError("applied: not a receipt")
