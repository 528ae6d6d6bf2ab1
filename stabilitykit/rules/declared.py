"""Signals that a pack declares beyond the catalogue."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import attrs

from stabilitykit.rules.conditions.lexer import NAME
from stabilitykit.rules.conditions.suggest import did_you_mean
from stabilitykit.rules.conditions.units import UNITS, spelt
from stabilitykit.rules.files.locate import BAD, Findings
from stabilitykit.rules.files.scalars import show
from stabilitykit.rules.files.shape import Item
from stabilitykit.rules.given import GivenError, read_given, take_as
from stabilitykit.signals import SignalSpec

__all__ = ["SIGNAL_UNITS", "declare_signals"]

SIGNAL_UNITS = ("ratio", "count", "bool", *(u for u in UNITS if u not in ("%", "turns")))
"""What may stand under `unit`."""
_KINDS: dict[str, Literal["number", "count", "bool"]] = {"count": "count", "tokens": "count", "bool": "bool"}
_DOMAINS = {"ratio": (0.0, 1.0), "bool": (0.0, 1.0), "count": (0.0, 2.0**53), "tokens": (0.0, 2.0**53)}
_DOMAIN = (0.0, 1e15)
_MAX_WORDS = 256


def declare_signals(
    findings: Findings, items: Mapping[str, Item], catalogue: Mapping[str, SignalSpec]
) -> dict[str, SignalSpec | None]:
    """Check the signals of a pack.

    Returns
    -------
    dict
        By name; ``None`` for one that is broken (reported).
    """
    declared: dict[str, SignalSpec | None] = {}
    for name, item in items.items():
        if name in catalogue:
            findings.add(item.place, "SK309", f"`{name}` is a signal of the catalogue", key=True)
        else:
            declared[name] = None if item.broken or findings.is_full(item.place) else _declare(findings, item)
    return declared


def _declare(findings: Findings, item: Item) -> SignalSpec | None:
    unit, words = item.get("unit"), item.get("values")
    if unit is BAD or words is BAD:
        return None
    scope = item.get("scope", "session")
    doc = item.get("doc", "")
    spec = SignalSpec(
        item.id, "enum", "session" if scope is BAD else scope, "" if doc is BAD else doc, "enum", 0.0, 0.0
    )
    if words is not None:
        return _enum(findings, item, spec, words)
    if unit is None:
        message = f"signal `{item.id}` needs `unit`, or `values` for an enum"
        findings.add(item.place, "SK202", message, key=True)
        return None
    if unit not in SIGNAL_UNITS:
        hint = spelt(unit) or did_you_mean(unit, SIGNAL_UNITS) or "units: " + " ".join(SIGNAL_UNITS)
        findings.add(item.at("unit"), "SK411", f"unknown unit {show(unit)}", hint=hint)
        return None
    lo, hi = _DOMAINS.get(unit, _DOMAIN)
    return _bounded(findings, item, attrs.evolve(spec, unit=unit, kind=_KINDS.get(unit, "number"), lo=lo, hi=hi))


def _enum(findings: Findings, item: Item, spec: SignalSpec, words: list[str]) -> SignalSpec | None:
    sound = True
    place = item.at("values")
    if not 1 <= len(words) <= _MAX_WORDS:
        findings.add(place, "SK206", f"an enum has 1 to {_MAX_WORDS} words")
        return None
    for index, word in enumerate(words):
        if not NAME.fullmatch(word):
            findings.add(place.child(index), "SK205", "a word of an enum is lower-case letters, digits and `_`")
            sound = False
        elif word in words[:index]:
            findings.add(place.child(index), "SK309", f"`{word}` stands here twice")
            sound = False
    for key in ("unit", "min", "max"):
        if item.get(key) is not None:
            findings.add(item.at(key), "SK201", f"an enum has no `{key}`", key=True)
            sound = False
    return attrs.evolve(spec, hi=float(len(words) - 1), values=tuple(words)) if sound else None


def _bounded(findings: Findings, item: Item, spec: SignalSpec) -> SignalSpec | None:
    """Lay `min` and `max` over the domain."""
    wide = attrs.evolve(spec, lo=-math.inf, hi=math.inf)
    bounds: dict[str, Any] = {"min": spec.lo, "max": spec.hi}
    for key in bounds:
        raw = item.get(key)
        if raw is BAD:
            return None
        if raw is None:
            continue
        if spec.kind == "bool":
            findings.add(item.at(key), "SK201", f"a bool has no `{key}`", key=True)
            return None
        try:
            bounds[key] = float(take_as(read_given(raw), wide))
        except GivenError as error:
            code = {"type": "SK203", "range": "SK206"}.get(error.reason, error.reason)
            findings.add(item.at(key), code, error.message, hint=error.hint)
            return None
    if bounds["min"] > bounds["max"]:
        findings.add(item.at("min" if item.get("min") is not None else "max"), "SK206", "min is greater than max")
        return None
    return attrs.evolve(spec, lo=bounds["min"], hi=bounds["max"])
