"""Template files: strict YAML, every mistake located (``file:line:col: CODE``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from stabilitykit.errors import PackError, Problem
from stabilitykit.rules.conditions.suggest import did_you_mean
from stabilitykit.rules.files.keys import Key, Table
from stabilitykit.rules.files.locate import BAD, Findings, Place
from stabilitykit.rules.files.reader import read
from stabilitykit.rules.files.scalars import show
from stabilitykit.rules.files.shape import check_map, check_required
from stabilitykit.signals import CATALOGUE
from stabilitykit.sources.logs.automaton import refusal
from stabilitykit.sources.logs.pattern import PatternProblem, Shape, shape_of
from stabilitykit.sources.logs.template import Template
from stabilitykit.sources.logs.vocabulary import BEHAVIOURS, DIMENSIONS, SERIES, is_series_signal

__all__ = ["FILE", "MAX_TEMPLATES", "TEMPLATE", "read_templates", "shipped_files", "shipped_templates"]

MAX_TEMPLATES = 500
"""Templates of one set: what one automaton is built from."""

FILE: Table = {
    "log_templates": Key("integer", "version of this format: 1", required=True),
    "family": Key("id", "the server, or the part of it, that writes these lines", required=True),
    "desc": Key("text", "one sentence"),
    "templates": Key("list", "the templates", required=True),
}
TEMPLATE: Table = {
    "template": Key("id", "its id, unique in a set", required=True),
    "desc": Key("text", "one sentence: what the line says", required=True),
    "pattern": Key("text", "the text, with fields `{name:type unit}`, in google-re2's syntax", required=True),
    "literal": Key("text", "a part of the pattern that is rare in logs: the prefilter (default: its longest text)"),
    "ignore_case": Key("flag", "letters match in either case"),
    "behaviours": Key("map", "dimension by behaviour, the main one first; none for a status line"),
    "required": Key("texts", "fields that a whole line has"),
    "prior": Key("number", "confidence when every required field is there, from 0 to 1 (default 0.95)"),
    "priority": Key("integer", "greater goes first; negative speaks only when nothing else does (default 0)"),
    "signals": Key("texts", "fields that are signals of a replica"),
    "periodic": Key("flag", "the server repeats the line: only a series of them says something"),
    "sources": Key("texts", "files of the server that print it"),
    "threads": Key("texts", "public threads that quote it"),
}


def shipped_files() -> list[Path]:
    """List the template files that come with the library."""
    return sorted((Path(__file__).resolve().parents[2] / "data" / "log_templates").glob("*.yaml"))


def shipped_templates() -> tuple[Template, ...]:
    """Read the templates that come with the library."""
    return read_templates(shipped_files())


def read_templates(paths: Iterable[Path]) -> tuple[Template, ...]:
    """Read template files into one set, best rank first.

    Raises
    ------
    PackError
        Every located problem of every file.
    MissingExtra
        google-re2 is not installed.
    """
    findings, found = Findings(), dict[str, Template]()
    for path in paths:
        try:
            document = read(path.read_bytes(), str(path))
        except OSError as error:
            raise PackError([Problem(str(path), 1, 1, "SK101", error.strerror or type(error).__name__)]) from None
        _Reading(findings, Place(document), found).file()
    findings.raise_all()
    return tuple(sorted(found.values(), key=lambda template: template.rank))


@attrs.frozen
class _Reading:
    findings: Findings
    place: Place
    found: dict[str, Template]

    def file(self) -> None:
        """Check one file."""
        top = check_map(self.findings, self.place, self.place.doc.root, FILE, "a file of templates")
        check_required(self.findings, self.place, top, FILE, "a file of templates")
        if top.get("log_templates") not in (None, BAD, 1):
            self.findings.add(self.place.child("log_templates"), "SK204", "this reader has version 1 of the format")
        for index, raw in enumerate(_list(top.get("templates"))):
            place = self.place.child("templates", index)
            if len(self.found) >= MAX_TEMPLATES:
                self.findings.add(place, "SK602", f"a set has at most {MAX_TEMPLATES} templates")
                return
            self._template(place, raw, str(top.get("family")))

    def _template(self, place: Place, raw: Any, family: str) -> None:
        given = check_map(self.findings, place, raw, TEMPLATE, "a template")
        if type(raw) is not dict:
            return
        check_required(self.findings, place, given, TEMPLATE, "a template")
        name, pattern = given.get("template"), given.get("pattern")
        if name in self.found:
            self.findings.add(place.child("template"), "SK309", f"template `{name}` stands here twice")
        if not isinstance(name, str) or not isinstance(pattern, str):
            return
        literal = given.get("literal")
        folded = given.get("ignore_case") is True
        shape = self._shape(place.child("pattern"), pattern, literal if isinstance(literal, str) else "", folded)
        if shape is None:
            return
        names = {field.name for field in shape.fields}
        behaviours, signals = self._behaviours(place, given), self._fields(place, given, "signals", names)
        self._check_signals(place.child("signals"), signals, shape)
        self.found.setdefault(
            name,
            Template(
                id=name,
                family=family,
                desc=str(given.get("desc", "")),
                pattern=pattern,
                regex=(("(?i)" if folded else "") + shape.regex).encode(),
                literal=shape.literal.encode(),
                ignore_case=folded,
                fields=shape.fields,
                required=frozenset(self._fields(place, given, "required", names)),
                behaviours=behaviours,
                prior=self._prior(place, given),
                priority=given["priority"] if isinstance(given.get("priority"), int) else 0,
                specificity=shape.specificity,
                signals=tuple(signals),
                is_periodic=given.get("periodic") is True,
                sources=tuple(_list(given.get("sources"))),
                threads=tuple(_list(given.get("threads"))),
            ),
        )

    def _shape(self, place: Place, pattern: str, literal: str, ignore_case: bool) -> Shape | None:
        try:
            shape = shape_of(pattern, literal)
        except PatternProblem as problem:
            self._refuse(place, problem)
            return None
        said = refusal(("(?i)" if ignore_case else "") + shape.regex)
        if said:
            message, part = said
            at = max(pattern.find(part), 0) if part else 0
            self._refuse(place, PatternProblem(message, at, max(len(part), 1)))
            return None
        return shape

    def _refuse(self, place: Place, problem: PatternProblem) -> None:
        self.findings.add(
            place, "SK605", problem.message, hint=problem.hint, offset=problem.offset, width=problem.width
        )

    def _behaviours(self, place: Place, given: Mapping[str, Any]) -> dict[str, str]:
        raw = given.get("behaviours")
        found = raw if isinstance(raw, dict) else {}
        for name, dimension in found.items():
            where = place.child("behaviours", name)
            if name not in BEHAVIOURS:
                hint = did_you_mean(str(name), BEHAVIOURS)
                self.findings.add(where, "SK416", f"unknown behaviour {show(name)}", hint=hint, key=True)
            if dimension not in DIMENSIONS:
                hint = did_you_mean(str(dimension), DIMENSIONS) or "one of " + ", ".join(DIMENSIONS)
                self.findings.add(where, "SK416", f"unknown dimension {show(dimension)}", hint=hint)
        if found and given.get("periodic") is True:
            message = "a status line is no behaviour by itself: the series decides"
            self.findings.add(place.child("behaviours"), "SK206", message, key=True)
        return {str(name): str(dimension) for name, dimension in found.items()}

    def _fields(self, place: Place, given: Mapping[str, Any], key: str, names: set[str]) -> list[str]:
        found = _list(given.get(key))
        for index, name in enumerate(found):
            if name not in names:
                hint = did_you_mean(str(name), names)
                self.findings.add(place.child(key, index), "SK303", f"the pattern has no field {show(name)}", hint=hint)
        return [str(name) for name in found]

    def _check_signals(self, place: Place, signals: list[str], shape: Shape) -> None:
        kinds = {field.name: field.kind for field in shape.fields}
        for index, name in enumerate(signals):
            if name in kinds and not is_series_signal(name):
                hint = did_you_mean(name, [*SERIES, *CATALOGUE])
                self.findings.add(place.child(index), "SK301", f"no signal of a replica: {show(name)}", hint=hint)
            elif kinds.get(name) in ("word", "path", "text"):
                self.findings.add(place.child(index), "SK203", f"`{name}` is text, a signal is a number")

    def _prior(self, place: Place, given: Mapping[str, Any]) -> float:
        prior = given.get("prior", 0.95)
        if not isinstance(prior, (int, float)) or not 0 < prior <= 1:
            if prior is not BAD:
                self.findings.add(place.child("prior"), "SK206", "a prior is above 0 and at most 1")
            return 1.0
        return float(prior)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
