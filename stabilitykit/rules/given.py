"""What a YAML value says exactly (``80 ms``, 0.2, true, a word), and what type it can be taken for."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Protocol

import attrs

from stabilitykit.rules.conditions.suggest import did_you_mean
from stabilitykit.rules.conditions.units import TURN_WORDS, UNITS, scaled, spelt, unit_of
from stabilitykit.rules.files.scalars import show

__all__ = ["Given", "GivenError", "Typed", "read_given", "take_as"]

_NUMBER = re.compile(r"\s*(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*(\S.*)?\Z", re.DOTALL)
_NUMBERLIKE = re.compile(r"\s*[-+.]*[0-9]")
_WORD = re.compile(r"[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]{0,127}\Z")
_LITERAL_WANTED = "a literal is wanted, for example `80 ms`, 0.2 or true"


class GivenError(Exception):
    """Why a value is not what is wanted: ``reason`` is a code, ``type`` or ``range``."""

    def __init__(self, reason: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.reason, self.message, self.hint = reason, message, hint


@attrs.frozen
class Given:
    """One literal, exactly as it was given.

    Parameters
    ----------
    kind
        ``number``, ``bool`` or ``word``.
    value
        The decimal text of a number; a bool; a word.
    unit
        Unit as written ("" for a bare number), ``turns`` or ``samples`` for their singulars.
    """

    kind: str
    value: Any
    unit: str = ""

    @property
    def is_whole(self) -> bool:
        """True for a bare whole number."""
        return self.kind == "number" and not self.unit and re.fullmatch(r"-?[0-9]+", self.value) is not None

    def __str__(self) -> str:
        if self.kind == "bool":
            return "true" if self.value else "false"
        return f"{self.value} {self.unit}" if self.unit else str(self.value)


class Typed(Protocol):
    """What a value may be: a setting of a detector, a parameter of an action, a signal's bound."""

    @property
    def kind(self) -> str:
        """Kind of the value: ``number``, ``count``, ``bool``, ``enum`` or ``word``."""

    @property
    def unit(self) -> str:
        """Unit of a number."""

    @property
    def lo(self) -> float:
        """Least value."""

    @property
    def hi(self) -> float:
        """Greatest value."""

    @property
    def values(self) -> tuple[str, ...]:
        """Words of an enum."""


def read_given(raw: object) -> Given:
    """Read a YAML value as a literal.

    Raises
    ------
    GivenError
        SK411 for an unknown unit, ``type`` for what is no literal at all.

    Examples
    --------
    >>> read_given("80 ms")
    Given(kind='number', value='80', unit='ms')
    >>> read_given(0.2), read_given("light")
    (Given(kind='number', value='0.2', unit=''), Given(kind='word', value='light', unit=''))
    """
    if isinstance(raw, bool):
        return Given("bool", raw)
    if isinstance(raw, (int, float)):
        if not math.isfinite(raw):
            raise GivenError("range", "a number must be finite")
        # A subclass, such as NumPy's float64, may print differently.
        return Given("number", int.__repr__(raw) if isinstance(raw, int) else float.__repr__(raw))
    if not isinstance(raw, str):
        raise GivenError("type", _LITERAL_WANTED)
    number = _NUMBER.match(raw)
    if number is None:
        if _NUMBERLIKE.match(raw) or not _WORD.match(raw):
            raise GivenError("type", _LITERAL_WANTED)
        return Given("word", raw)
    text, unit = number[1], (number[2] or "").rstrip()
    if unit in TURN_WORDS:
        return Given("number", text, TURN_WORDS[unit])
    if unit and unit not in UNITS:
        hint = spelt(unit) or did_you_mean(unit, UNITS) or "units: " + " ".join(UNITS)
        raise GivenError("SK411", f"unknown unit {show(unit)}", hint)
    return Given("number", text, unit)


def take_as(given: Given, want: Typed) -> Any:
    """Take a literal for a type.

    Parameters
    ----------
    want
        Kind, unit, closed range and words that are wanted.

    Returns
    -------
    float, int, bool or str
        A number in the unit wanted; an int for a count.

    Raises
    ------
    GivenError
        When it has another type, unit or range, or is no word of the list.
    """
    if want.kind == "bool":
        if given.kind != "bool":
            raise GivenError("type", f"true or false is wanted, not {show(str(given))}")
        return given.value
    if want.kind in ("enum", "word"):
        return _take_word(given, want.kind, want.values)
    if given.kind != "number":
        unit = f" in {want.unit}" if _named(want.unit) else ""
        raise GivenError("type", f"a number{unit} is wanted, not {show(str(given))}")
    value = _in_unit(given, want)
    if not want.lo <= value <= want.hi or not math.isfinite(value):
        raise GivenError("range", f"{given} is {_outside(want)}")
    if want.kind == "count":
        if value != math.floor(value):
            raise GivenError("type", f"a whole number is wanted, not {given}")
        return int(value)
    return value


def _take_word(given: Given, kind: str, words: Sequence[str]) -> str:
    if given.kind != "word":
        hint = f'quote it: "{given}"' if kind == "word" and given.kind == "bool" else ""
        raise GivenError("type", f"a word is wanted, not {given}", hint)
    word: str = given.value
    if kind == "enum" and word not in words:
        hint = did_you_mean(word, words) or "one of " + ", ".join(words)
        raise GivenError("SK416", f"unknown value {show(word)}", hint)
    return word


def _named(unit: str) -> bool:
    found = unit_of(unit)
    return found is not None and not found.is_plain


def _in_unit(given: Given, want: Typed) -> float:
    target = want.unit if unit_of(want.unit) is not None else ""
    if not given.unit:
        # Counts of something (tokens, turns) take bare numbers.
        if want.kind == "number" and _named(target):
            raise GivenError("SK411", f"{given} needs its unit", f"`{given} {target}`")
        return float(given.value)
    try:
        return scaled(given.value, given.unit, target)
    except ValueError:
        wanted = f"in {target}" if _named(target) else "a bare number"
        raise GivenError("SK410", f"{given} is not {wanted}") from None


def _outside(want: Typed) -> str:
    unit = f" {want.unit}" if _named(want.unit) else ""
    if math.isinf(want.hi):
        return "not finite" if math.isinf(want.lo) else f"below {want.lo:g}{unit}"
    if math.isinf(want.lo):
        return f"above {want.hi:g}{unit}"
    return f"outside {want.lo:g} to {want.hi:g}{unit}"
