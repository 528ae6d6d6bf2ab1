"""Values of fields, with ``params.x`` standing wherever a literal of its type may."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import attrs

from stabilitykit.rules.conditions.units import TURN_WORDS
from stabilitykit.rules.files.locate import BAD, Findings, Place
from stabilitykit.rules.given import Given, GivenError, Typed, read_given, take_as

__all__ = ["MAX_TURNS", "Codes", "Values"]

MAX_TURNS = 255
"""Most turns of for, keep_for, cooldown and hold_limit."""

_PARAM = re.compile(r"\s*params\s*\.\s*([A-Za-z_][A-Za-z0-9_]*)\s*\Z")
_TURNS = re.compile(r"\s*(0|[1-9][0-9]{0,17})\s+(turns?|samples?)\s*\Z")


@attrs.frozen
class Codes:
    """Codes for a wrong type and a wrong range; unit and enum errors have their own."""

    type: str = "SK203"
    range: str = "SK206"


SETTING = Codes()


class Values:
    """Resolves and checks values.

    Parameters
    ----------
    findings
        Where problems go.
    params
        Effective literals of the params; ``None`` for one that is broken.
    """

    def __init__(self, findings: Findings, params: Mapping[str, Given | None]) -> None:
        self.findings = findings
        self.params = params

    def literal(self, place: Place, raw: Any, codes: Codes = SETTING) -> Given | None:
        """Read a literal, or the param it names; ``None`` after reporting what is wrong."""
        if raw is None or raw is BAD:
            return None
        if type(raw) is str and "params" in raw and (named := _PARAM.match(raw)):
            return self._param(place, named[1])
        try:
            return read_given(raw)
        except GivenError as error:
            self._report(place, error, codes)
            return None

    def _param(self, place: Place, name: str) -> Given | None:
        if name not in self.params:
            self.findings.add(place, "SK303", f"unknown param `{name}`", near=(name, self.params))
            return None
        return self.params[name]

    def typed(self, place: Place, raw: Any, want: Typed, codes: Codes = SETTING) -> Any:
        """Give a value of a type; ``BAD`` after reporting what is wrong."""
        literal = self.literal(place, raw, codes)
        if literal is None:
            return BAD
        try:
            return take_as(literal, want)
        except GivenError as error:
            self._report(place, error, codes)
            return BAD

    def _report(self, place: Place, error: GivenError, codes: Codes) -> None:
        code = {"type": codes.type, "range": codes.range}.get(error.reason, error.reason)
        self.findings.add(place, code, error.message, hint=error.hint)

    def turns(self, place: Place, raw: Any, default: int, *, lo: int = 0, hi: int = MAX_TURNS, word: str = "") -> int:
        """Give a number of turns.

        Parameters
        ----------
        word
            ``turns`` or ``samples``, whichever the scope wants ("": both will do).

        Returns
        -------
        int
            The default when the field is absent or wrong (then it was reported).
        """
        if raw is None or raw is BAD:
            return default
        if type(raw) is str and (match := _TURNS.match(raw)):
            count, unit = int(match[1]), TURN_WORDS[match[2]]
        else:
            literal = self.literal(place, raw)
            if literal is None:
                return default
            if literal.unit not in ("turns", "samples") or not re.fullmatch(r"[0-9]{1,18}", literal.value):
                number = literal.value if literal.kind == "number" and literal.value.isdigit() else "3"
                message = "a whole number of turns is wanted"
                self.findings.add(place, "SK412", message, hint=f"`{number} {word or 'turns'}`")
                return default
            count, unit = int(literal.value), literal.unit
        if word and unit != word:
            hint = f"`{count} {word if count != 1 else word[:-1]}`"
            why = "samples" if word == "samples" else "turns"
            self.findings.add(place, "SK412", f"the memory of this moves once per {why[:-1]}: write {why}", hint=hint)
        if not lo <= count <= hi:
            self.findings.add(place, "SK206", f"{count} is outside {lo} to {hi} {unit}")
            return default
        return count

    def whole(self, place: Place, raw: Any, default: int, *, lo: int, hi: int) -> int:
        """Give a bare whole number; the default when it is wrong (then it was reported)."""
        value = self.typed(place, raw, _Whole(float(lo), float(hi)))
        return default if value is BAD else int(value)


@attrs.frozen
class _Whole:
    """A bare whole number."""

    lo: float = 0.0
    hi: float = math.inf
    kind: str = "count"
    unit: str = "count"
    values: tuple[str, ...] = ()
