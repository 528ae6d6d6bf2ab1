"""Values of signals as cases write them."""

from __future__ import annotations

import math
from typing import Any

from stabilitykit.rules.conditions.suggest import did_you_mean
from stabilitykit.rules.conditions.units import scaled
from stabilitykit.rules.files.locate import BAD, Findings, Place
from stabilitykit.rules.files.scalars import show
from stabilitykit.rules.given import GivenError, read_given
from stabilitykit.signals import SignalSpec

__all__ = ["signal_value"]


def signal_value(findings: Findings, place: Place, raw: Any, spec: SignalSpec) -> Any:
    """Read the value of a signal.

    Parameters
    ----------
    raw
        A number in the signal's unit, a literal with a unit, a bool, a word of the enum, a list
        for an array, ``missing`` or ``invalid``.

    Returns
    -------
    Any
        What a Turn takes; ``None`` when missing; ``BAD`` after reporting what is wrong.
    """
    if raw == "missing":
        return None
    if spec.kind == "array":
        return _array(findings, place, raw, spec)
    if raw == "invalid":
        # A word that the enum lacks, or NaN.
        return "invalid" if spec.kind == "enum" else math.nan
    if spec.kind == "enum":
        return _word(findings, place, raw, spec)
    if type(raw) is bool and spec.kind == "bool":
        return raw
    if type(raw) in (int, float):
        return float(raw)
    if type(raw) is str:
        return _literal(findings, place, raw, spec)
    findings.add(place, "SK203", f"`{spec.name}` is a {spec.kind}, `missing` or `invalid`")
    return BAD


def _literal(findings: Findings, place: Place, raw: str, spec: SignalSpec) -> Any:
    try:
        given = read_given(raw)
    except GivenError as error:
        code = error.reason if error.reason.startswith("SK") else "SK203"
        findings.add(place, code, str(error), hint=error.hint)
        return BAD
    if given.kind != "number":
        hint = did_you_mean(raw, ("missing", "invalid"))
        findings.add(place, "SK203", f"`{spec.name}` is a {spec.kind}, `missing` or `invalid`", hint=hint)
        return BAD
    target = "count" if spec.kind == "bool" else spec.unit
    try:
        return scaled(given.value, given.unit or target, target)
    except ValueError:
        findings.add(place, "SK410", f"`{spec.name}` is in {spec.unit}, not in {given.unit}")
        return BAD


def _word(findings: Findings, place: Place, raw: Any, spec: SignalSpec) -> Any:
    if type(raw) is str and raw in spec.values:
        return raw
    hint = did_you_mean(str(raw), spec.values) or "one of " + ", ".join(spec.values)
    findings.add(place, "SK416", f"`{spec.name}` has no value {show(str(raw))}", hint=hint)
    return BAD


def _array(findings: Findings, place: Place, raw: Any, spec: SignalSpec) -> Any:
    wanted = (int,) if spec.dtype.startswith("int") else (int, float)
    if type(raw) is list and all(type(v) in wanted for v in raw):
        return tuple(raw)
    element = "whole numbers" if wanted == (int,) else "numbers"
    findings.add(place, "SK203", f"`{spec.name}` is a list of {element}, or `missing`")
    return BAD
