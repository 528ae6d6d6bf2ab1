"""``mapping.yaml``: which column of a log is which signal, and in which unit it stands there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from stabilitykit.errors import PackError, Problem
from stabilitykit.rules.conditions.suggest import did_you_mean
from stabilitykit.rules.conditions.units import unit_of
from stabilitykit.rules.files.keys import Key, Table
from stabilitykit.rules.files.locate import BAD, Findings, Place
from stabilitykit.rules.files.reader import read
from stabilitykit.rules.files.scalars import show
from stabilitykit.rules.files.shape import check_map
from stabilitykit.signals import CATALOGUE, SignalSpec
from stabilitykit.sources.cells import ABSENT, CellError, Column, Sentinels, read_signal
from stabilitykit.sources.rows import FORMATS

__all__ = ["LogMapping", "read_mapping"]

_TEXTS = ("session", "tenant", "replica", "device", "model")
_COUNTS = ("turn", "revision")
_TIMES = ("timestamp", "replica_sample", "device_sample")
_TIME_UNITS = ("s", "ms", "us", "ns", "datetime")
_FREE_UNITS = ("tokens", "count", "bool", "enum")
"""Units that a column may leave out: nobody counts tokens in thousands."""

_TOP: Table = {
    "format": Key("word", "format of the file, when its name does not tell", values=FORMATS),
    "kind": Key("word", "what a row is", values=("turn", "sample")),
    "missing": Key("list", "values that stand for nothing"),
    "signals": Key("map", "the columns, by the signal they hold", required=True),
    **{name: Key("map", f"column or constant of the {name}") for name in (*_TEXTS, *_COUNTS)},
    **{name: Key("map", f"column and unit of the {name}") for name in _TIMES},
}
_ONE: Table = {"column": Key("text", "name of the column"), "const": Key("any", "one value for every row")}
_TIME: Table = {"column": Key("text", "name of the column"), "unit": Key("word", "its unit", values=_TIME_UNITS)}
_SIGNAL: Table = {
    **_ONE,
    "unit": Key("text", "unit of the column"),
    "over": Key("text", "column to divide by"),
    "words": Key("map", "what the texts of the column mean"),
    "missing": Key("list", "values that stand for nothing, here"),
}


@attrs.frozen
class LogMapping:
    """A checked mapping.

    Parameters
    ----------
    kind
        ``turn`` or ``sample``.
    fields
        Columns of identity and times, by their name in the mapping.
    signals
        Columns of signals, by signal.
    """

    file: str
    kind: str
    format: str
    fields: Mapping[str, Column]
    signals: Mapping[str, Column]

    @property
    def columns(self) -> dict[str, int]:
        """Every column that is read, with the line that names it."""
        found: dict[str, int] = {}
        for column in (*self.fields.values(), *self.signals.values()):
            for name in (column.name, column.over):
                if name:
                    found.setdefault(name, column.line)
        return found

    def check_columns(self, columns: tuple[str, ...], log: str) -> None:
        """Compare with the columns that a log declares.

        Raises
        ------
        PackError
            Located in the mapping, for every column that the log does not have.
        """
        problems = [
            Problem(self.file, line, 1, "SK301", f"{log} has no column {show(name)}", hint=did_you_mean(name, columns))
            for name, line in self.columns.items()
            if name not in columns and name.split(".")[0] not in columns
        ]
        if problems:
            raise PackError(problems)


def read_mapping(path: Path, *, declared: Mapping[str, SignalSpec] | None = None) -> LogMapping:
    """Read and check a mapping file.

    Parameters
    ----------
    path
        The file.
    declared
        Signals that the pack declares beyond the catalogue.

    Raises
    ------
    PackError
        With every located problem.
    """
    try:
        source = path.read_bytes()
    except OSError as error:
        raise PackError([Problem(str(path), 1, 1, "SK101", error.strerror or type(error).__name__)]) from None
    findings = Findings()
    mapping = _Reading(findings, Place(read(source, str(path))), {**CATALOGUE, **(declared or {})}).mapping()
    findings.raise_all()
    return mapping


class _Reading:
    def __init__(self, findings: Findings, place: Place, signals: Mapping[str, SignalSpec]) -> None:
        self.findings, self.place, self.known = findings, place, signals
        self.missing = Sentinels()

    def mapping(self) -> LogMapping:
        """Check the whole file."""
        top = check_map(self.findings, self.place, self.place.doc.root, _TOP, "a mapping")
        kind = "sample" if top.get("kind") == "sample" else "turn"
        self.missing = self._sentinels(self.place.child("missing"), top.get("missing"), Sentinels())
        fields = {name: self._field(name, top[name]) for name in (*_TEXTS, *_COUNTS) if isinstance(top.get(name), dict)}
        fields |= {name: self._time(name, top[name]) for name in _TIMES if isinstance(top.get(name), dict)}
        if kind == "turn" and not top.get("session"):
            hint = "`session: {column: ...}`, or `session: {const: c-1}` when all rows are one conversation"
            self.findings.add(self.place, "SK202", "turns need `session`", hint=hint)
        raw = top.get("signals")
        if raw is None:
            self.findings.add(self.place, "SK202", "a mapping needs `signals`: the columns, by the signal they hold")
        signals = self._signals(raw if isinstance(raw, dict) else {}, kind)
        chosen = top.get("format")
        return LogMapping(self.place.file, kind, str(chosen) if chosen in FORMATS else "", fields, signals)

    def _field(self, name: str, raw: dict[str, Any]) -> Column:
        place = self.place.child(name)
        fields = check_map(self.findings, place, raw, _ONE, f"`{name}`")
        column = self._column(place, fields)
        if column.const is not ABSENT and not isinstance(column.const, (str, int)):
            self.findings.add(place.child("const"), "SK203", f"`{name}` is one text or number")
        return column

    def _time(self, name: str, raw: dict[str, Any]) -> Column:
        place = self.place.child(name)
        fields = check_map(self.findings, place, raw, _TIME, f"`{name}`")
        unit = fields.get("unit")
        if unit is None:
            hint = "one of " + ", ".join(_TIME_UNITS)
            self.findings.add(place, "SK411", f"`{name}` needs the unit of its column", hint=hint)
        return attrs.evolve(self._column(place, fields), unit=unit if isinstance(unit, str) else "s")

    def _column(self, place: Place, fields: Mapping[str, Any]) -> Column:
        name, const = fields.get("column"), fields.get("const")
        if (name is None) == (const is None):
            self.findings.add(place, "SK202", "a column or a constant is needed" if name is None else "one of the two")
        return Column(
            name=name if isinstance(name, str) else "",
            const=ABSENT if const is None or const is BAD else const,
            missing=self.missing,
            line=place.line,
        )

    def _sentinels(self, place: Place, raw: Any, default: Sentinels) -> Sentinels:
        if not isinstance(raw, list):
            return default
        numbers = {float(v) for v in raw if type(v) in (int, float)}
        for index, value in enumerate(raw):
            if type(value) not in (int, float, str):
                self.findings.add(place.child(index), "SK203", "a number or a text (nothing is missing anyway)")
        return Sentinels(frozenset(numbers), frozenset({"", *(v for v in raw if isinstance(v, str))}))

    def _signals(self, raw: Mapping[str, Any], kind: str) -> dict[str, Column]:
        found: dict[str, Column] = {}
        for name, value in raw.items():
            place, spec = self.place.child("signals", name), self.known.get(name)
            if spec is None:
                hint = did_you_mean(name, self.known)
                self.findings.add(place, "SK301", f"unknown signal {show(name)}", hint=hint, key=True)
                continue
            if kind == "sample" and spec.scope == "session":
                self.findings.add(place, "SK301", f"`{name}` is a session's signal: it comes with a turn", key=True)
            found[name] = self._signal(place, value, spec)
        return found

    def _signal(self, place: Place, raw: Any, spec: SignalSpec) -> Column:
        fields = check_map(self.findings, place, {"column": raw} if isinstance(raw, str) else raw, _SIGNAL, "a signal")
        column = self._column(place, fields)
        missing = self._sentinels(place.child("missing"), fields.get("missing"), self.missing)
        over = fields.get("over")
        column = attrs.evolve(
            column,
            unit=self._unit(place, fields, spec),
            over=over if isinstance(over, str) else "",
            words=self._words(place.child("words"), fields.get("words"), spec),
            missing=missing,
        )
        if column.const is not ABSENT:
            try:
                read_signal(column.const, column, spec, {})
            except CellError as error:
                self.findings.add(place.child("const"), "SK203", str(error))
        return column

    def _unit(self, place: Place, fields: Mapping[str, Any], spec: SignalSpec) -> str:
        unit = fields.get("unit")
        is_plain = spec.kind in ("enum", "bool", "array")
        if unit is None and not is_plain and spec.unit not in _FREE_UNITS and "over" not in fields:
            hint = f"`unit: {spec.unit}`" + (', or `unit: "%"`' if spec.unit == "ratio" else "")
            self.findings.add(place, "SK411", f"say the unit of the column of `{spec.name}`", hint=hint, key=True)
        if not isinstance(unit, str) or unit == spec.unit:
            return ""
        given, wanted = unit_of(unit), unit_of(spec.unit)
        if is_plain or wanted is None:
            self.findings.add(place.child("unit"), "SK411", f"`{spec.name}` has no unit")
        elif given is None:
            hint = did_you_mean(unit, ("us", "ms", "s", "%", "ratio", "tokens", "tokens/s", "/s", "C", "count"))
            self.findings.add(place.child("unit"), "SK411", f"unknown unit {show(unit)}", hint=hint)
        elif given.dim != wanted.dim:
            message = f"{show(unit)} cannot be counted in {spec.unit}, the unit of `{spec.name}`"
            self.findings.add(place.child("unit"), "SK410", message)
        else:
            return unit
        return ""

    def _words(self, place: Place, raw: Any, spec: SignalSpec) -> dict[str, str]:
        if not isinstance(raw, dict):
            return {}
        if spec.kind != "enum":
            self.findings.add(place, "SK203", f"`{spec.name}` is no enum: it has no words", key=True)
        for text, word in raw.items():
            if spec.kind == "enum" and word not in spec.values:
                hint = did_you_mean(str(word), spec.values) or "one of " + ", ".join(spec.values)
                self.findings.add(place.child(text), "SK416", f"no word of `{spec.name}`", hint=hint)
        return {str(text): str(word) for text, word in raw.items()}
