"""Params of a pack: default, range, and what the host set at load."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stabilitykit.errors import Problem
from stabilitykit.rules.conditions.suggest import did_you_mean
from stabilitykit.rules.conditions.units import scaled, unit_of
from stabilitykit.rules.files.locate import BAD, Findings, Place
from stabilitykit.rules.files.shape import Item
from stabilitykit.rules.given import Given, GivenError, read_given
from stabilitykit.rules.pack import ParamValue

__all__ = ["OVERRIDES_FILE", "resolve_params"]

OVERRIDES_FILE = "<params>"
"""The file that a problem with ``Engine.load(params=)`` names."""
_REFERENCE = re.compile(r"\s*params\s*\.")


def resolve_params(
    findings: Findings, items: Mapping[str, Item], overrides: Mapping[str, Any] | None
) -> tuple[dict[str, ParamValue], dict[str, Given | None]]:
    """Check the params and lay the host's values over the defaults.

    Parameters
    ----------
    overrides
        A plain number is in the unit of the default; a string is a literal.

    Returns
    -------
    tuple
        The params, and the literal of each that is in force (``None``: it is broken).
    """
    params: dict[str, ParamValue] = {}
    literals: dict[str, Given | None] = {}
    given = dict(overrides or {})
    for name, item in items.items():
        literals[name] = None
        value = given.pop(name, None)
        default = None if findings.is_full(item.place) else _default(findings, item)
        if default is None:
            continue
        bounds = _bounds(findings, item, default)
        if bounds is None:
            continue
        _check_range(findings, item.at("default"), default, default, bounds)
        literal = default if value is None else _override(findings, name, value, default, bounds)
        literals[name] = literal
        doc = item.get("doc", "")
        params[name] = _param_value(name, literal, default, bounds, "" if doc is BAD else doc)
    for name in given:
        _refuse(findings, "SK303", f"no param `{name}`", did_you_mean(str(name), items))
    return params, literals


def _default(findings: Findings, item: Item) -> Given | None:
    raw = item.get("default")
    if item.broken or raw is None or raw is BAD:
        return None
    if type(raw) is str and _REFERENCE.match(raw):
        findings.add(item.at("default"), "SK417", "a param's default is a literal, not another param")
        return None
    try:
        return read_given(raw)
    except GivenError as error:
        code = error.reason if error.reason.startswith("SK") else "SK417"
        findings.add(item.at("default"), code, error.message, hint=error.hint)
        return None


_Bounds = tuple[Given | None, Given | None]


def _bounds(findings: Findings, item: Item, default: Given) -> _Bounds | None:
    lo, hi = (_bound(findings, item, key, default) for key in ("min", "max"))
    if lo is BAD or hi is BAD:
        return None
    if lo is not None and hi is not None and _number(lo, default.unit) > _number(hi, default.unit):
        findings.add(item.at("min"), "SK417", f"min {lo} is greater than max {hi}")
        return None
    return lo, hi


def _bound(findings: Findings, item: Item, key: str, default: Given) -> Any:
    """Give a bound, ``None`` when there is none, ``BAD`` after reporting it."""
    raw = item.get(key)
    if raw is None or raw is BAD:
        return raw
    try:
        bound = read_given(raw)
    except GivenError as error:
        code = error.reason if error.reason.startswith("SK") else "SK417"
        findings.add(item.at(key), code, error.message, hint=error.hint)
        return BAD
    if default.kind != "number" or bound.kind != "number":
        findings.add(item.at(key), "SK417", f"`{key}` is for numbers only")
        return BAD
    if (problem := _mismatch(bound, default)) is not None:
        findings.add(item.at(key), *problem)
        return BAD
    return bound


def _mismatch(literal: Given, default: Given) -> tuple[str, str] | None:
    """Say why a literal is of another type than the default: (code, message)."""
    if literal.kind != default.kind:
        return "SK417", f"{literal} is not of the type of the default, {default}"
    if literal.kind == "number" and unit_of(literal.unit) != unit_of(default.unit):
        a, b = unit_of(literal.unit), unit_of(default.unit)
        if not literal.unit and b is not None and not b.is_plain:
            return "SK411", f"{literal} needs its unit, like the default {default}"
        if a is None or b is None or a.dim != b.dim:
            return "SK417", f"{literal} is not of the unit of the default, {default}"
    return None


def _number(literal: Given, unit: str) -> float:
    return scaled(literal.value, literal.unit, unit)


def _check_range(
    findings: Findings, place: Place | None, literal: Given, default: Given, bounds: _Bounds, name: str = ""
) -> bool:
    if literal.kind != "number":
        return True
    value = _number(literal, default.unit)
    lo, hi = bounds
    message = ""
    if lo is not None and value < _number(lo, default.unit):
        message = f"{literal} is below the minimum {lo}"
    elif hi is not None and value > _number(hi, default.unit):
        message = f"{literal} is above the maximum {hi}"
    elif value - value != 0:
        message = f"{literal} is not finite"
    if not message:
        return True
    if place is None:
        _refuse(findings, "SK417", f"param `{name}`: {message}")
    else:
        findings.add(place, "SK417", message)
    return False


def _override(findings: Findings, name: str, value: Any, default: Given, bounds: _Bounds) -> Given:
    """Read the host's value; the default stands in for one that was refused."""
    try:
        literal = read_given(value)
    except GivenError as error:
        code = error.reason if error.reason.startswith("SK") else "SK417"
        _refuse(findings, code, f"param `{name}`: {error}", error.hint)
        return default
    if not isinstance(value, str) and literal.kind == "number" and default.kind == "number":
        literal = Given("number", literal.value, default.unit)
    if (problem := _mismatch(literal, default)) is not None:
        _refuse(findings, problem[0], f"param `{name}`: {problem[1]}")
        return default
    return literal if _check_range(findings, None, literal, default, bounds, name) else default


def _refuse(findings: Findings, code: str, message: str, hint: str = "") -> None:
    findings.extend([Problem(OVERRIDES_FILE, 1, 1, code, message, hint=hint)])


def _param_value(name: str, literal: Given, default: Given, bounds: _Bounds, doc: str) -> ParamValue:
    if default.kind != "number":
        return ParamValue(name, literal.value, "bool" if default.kind == "bool" else "enum", doc)
    # Percent is a way to write a ratio; a bare number is plain.
    unit = "ratio" if default.unit in ("%", "") else default.unit
    lo, hi = (None if b is None else _number(b, unit) for b in bounds)
    return ParamValue(name, _number(literal, unit) + 0.0, unit, doc, lo, hi)
