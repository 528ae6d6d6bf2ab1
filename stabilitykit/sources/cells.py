"""One cell of a log into one value of a Turn: number, unit, sentinel, word, array, time."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import attrs

from stabilitykit.rules.conditions.units import scaled
from stabilitykit.signals import SignalSpec

__all__ = ["ABSENT", "CellError", "Column", "Sentinels", "as_text", "find", "read_count", "read_signal", "read_time"]

ABSENT: Any = object()
"""A cell that says nothing."""
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,4})?\Z", re.ASCII)
_TRUTH = {"true": True, "1": True, "1.0": True, "yes": True, "false": False, "0": False, "0.0": False, "no": False}
_NOT_FINITE = {"nan", "inf", "-inf", "+inf", "infinity", "-infinity"}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


class CellError(ValueError):
    """A cell that cannot be what its column should be; the message never shows what stood in it."""


@attrs.frozen
class Sentinels:
    """Values that stand for *nothing was measured*: numbers by value, texts by letter."""

    numbers: frozenset[float] = frozenset()
    texts: frozenset[str] = frozenset(("",))

    def holds(self, text: str) -> bool:
        """Tell whether a cell's text is one of them."""
        if text in self.texts:
            return True
        return bool(self.numbers) and _NUMBER.match(text) is not None and float(text) in self.numbers


@attrs.frozen
class Column:
    """Where a value comes from.

    Parameters
    ----------
    name
        The column; ``a.b`` also finds ``b`` inside ``a``.
    const
        The value itself where there is no column.
    unit
        The column's unit ("" when it is the signal's own).
    over
        A second column to divide by.
    words
        What the texts of the column mean, for enums.
    line
        Where it stands in the mapping.
    """

    name: str = ""
    const: Any = ABSENT
    unit: str = ""
    over: str = ""
    words: Mapping[str, str] = attrs.field(factory=dict)
    missing: Sentinels = Sentinels()
    line: int = 0

    def find(self, fields: Mapping[str, Any]) -> Any:
        """Give the raw value, or ``ABSENT``."""
        return self.const if self.const is not ABSENT else find(fields, self.name)


def find(fields: Mapping[str, Any], name: str) -> Any:
    """Give a field by name, or by a path of names joined by dots."""
    value = fields.get(name, ABSENT)
    if value is not ABSENT or "." not in name:
        return value
    found: Any = fields
    for step in name.split("."):
        found = found.get(step, ABSENT) if isinstance(found, Mapping) else ABSENT
    return found


def as_text(value: Any) -> str:
    """Write a cell as the text that a CSV file would hold."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def read_signal(raw: Any, column: Column, spec: SignalSpec, fields: Mapping[str, Any]) -> Any:
    """Read the value of a signal, in the signal's own unit; ``ABSENT`` when it is missing.

    Raises
    ------
    CellError
        Not what the signal is made of. (Whether a number is in its domain is the engine's business.)
    """
    if spec.kind == "enum":
        return _word(raw, column)
    if raw is None or raw is ABSENT:
        return ABSENT
    if spec.kind == "array":
        return _array(raw, column, spec)
    text = as_text(raw)
    if column.missing.holds(text):
        return ABSENT
    if spec.kind == "bool":
        if text.lower() not in _TRUTH:
            raise CellError(f"not true or false: {_kind(raw)}")
        return _TRUTH[text.lower()]
    value = _number(raw, text, column.unit, spec.unit)
    return value if not column.over else _divide(value, column, fields)


def _word(raw: Any, column: Column) -> Any:
    if raw is ABSENT:
        return ABSENT
    text = as_text(raw)
    if text in column.words:
        return column.words[text]
    return ABSENT if raw is None or column.missing.holds(text) else text


def _number(raw: Any, text: str, unit: str, target: str) -> float:
    if isinstance(raw, (list, dict, bool)):
        raise CellError(f"not a number: {_kind(raw)}")
    if _NUMBER.match(text):
        # by the decimal text, so that CSV, JSON and Parquet give the same bits
        return scaled(text, unit, target) if unit and unit != target else float(text)
    if text.lower() in _NOT_FINITE:
        return float(text)
    raise CellError(f"not a number: {_kind(raw)}")


def _divide(value: float, column: Column, fields: Mapping[str, Any]) -> Any:
    raw = find(fields, column.over)
    if raw is None or raw is ABSENT or column.missing.holds(as_text(raw)):
        return ABSENT
    by = _number(raw, as_text(raw), "", "")
    return value / by if by else math.nan


def _array(raw: Any, column: Column, spec: SignalSpec) -> Any:
    value = raw
    if isinstance(raw, str):
        if column.missing.holds(raw.strip()):
            return ABSENT
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            raise CellError("not an array: text that is no JSON list") from None
    if not isinstance(value, list):
        raise CellError(f"not an array: {_kind(value)}")
    import numpy as np

    try:
        return np.asarray([math.nan if v is None else v for v in value], dtype=spec.dtype)
    except (TypeError, ValueError, OverflowError):
        raise CellError(f"not an array of {spec.dtype}") from None


def read_count(raw: Any) -> int:
    """Read a whole number (a turn id, a revision).

    Raises
    ------
    CellError
        Anything else.
    """
    text = as_text(raw)
    try:
        return int(text)
    except ValueError:
        raise CellError(f"not a whole number: {_kind(raw)}") from None


def read_time(raw: Any, column: Column) -> float:
    """Read a time in seconds; with the unit ``datetime`` ISO 8601 text (UTC where it names no zone).

    Raises
    ------
    CellError
        No number, or no such text.
    """
    if column.unit == "datetime":
        return _seconds_since_epoch(raw)
    value = _number(raw, as_text(raw), "", "")
    return value if column.unit in ("", "s") else value * _SECONDS[column.unit]


def _seconds_since_epoch(raw: Any) -> float:
    try:
        # seven decimals (100 ns) are one more than Python reads
        when = raw if isinstance(raw, datetime) else datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", raw.strip()))
    except (AttributeError, TypeError, ValueError):
        raise CellError(f"not a date and time: {_kind(raw)}") from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _kind(raw: Any) -> str:
    names = {dict: "a mapping", list: "a list", bool: "true or false", int: "a number", float: "a number"}
    return f"text of {len(raw)} characters" if isinstance(raw, str) else names.get(type(raw), type(raw).__name__)
