"""Objectives of a probe, ``ttft_ms.p99 < 800``: a signal, a statistic over the whole load, a limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NoReturn

import attrs

from stabilitykit.cli.probe.figures import nearest_rank
from stabilitykit.errors import UsageError
from stabilitykit.rules.conditions.lexer import SyntaxProblem, Token, tokens
from stabilitykit.rules.conditions.suggest import did_you_mean
from stabilitykit.rules.conditions.units import unit_of
from stabilitykit.rules.given import Given, GivenError, take_as
from stabilitykit.signals import CATALOGUE

__all__ = ["Objective", "read_objective"]

_STATISTICS = ("mean", "max", "min", "p50", "p90", "p99", "p999")
_HOLDS = {
    "<": lambda value, limit: value < limit,
    "<=": lambda value, limit: value <= limit,
    ">": lambda value, limit: value > limit,
    ">=": lambda value, limit: value >= limit,
}


@attrs.frozen
class Objective:
    """One objective.

    Parameters
    ----------
    text
        As it was given.
    signal, statistic
        What is looked at; ``p99`` is a nearest rank, ``p999`` one of a thousand.
    op, limit
        Comparison, and the limit in the signal's unit.

    Examples
    --------
    >>> objective = read_objective("ttft_ms.p99 < 0.8 s")
    >>> objective.limit, objective.value([300.0, 900.0]), objective.holds([300.0, 900.0]), objective.holds([])
    (800.0, 900.0, False, False)
    """

    text: str
    signal: str
    statistic: str
    op: str
    limit: float

    def value(self, values: Sequence[float]) -> float | None:
        """Give the statistic; ``None`` when there is no value."""
        if not values:
            return None
        if self.statistic == "mean":
            return math.fsum(values) / len(values)
        if self.statistic in ("max", "min"):
            return max(values) if self.statistic == "max" else min(values)
        return nearest_rank(sorted(values), _share(self.statistic))

    def holds(self, values: Sequence[float]) -> bool:
        """Tell whether it is met; what was never measured is not."""
        value = self.value(values)
        return value is not None and _HOLDS[self.op](value, self.limit)


def read_objective(text: str) -> Objective:
    """Read one objective: a signal, a statistic, a comparison and a number, in units as in rules.

    A bare number is in the signal's unit.

    Raises
    ------
    UsageError
        What is wrong, and where.
    """
    try:
        found = tokens(text)
    except SyntaxProblem as problem:
        _refuse(text, problem.offset, problem.message, problem.hint)
    shape = [("dotted",), ("op",), ("num",), ("end",)]
    wanted = ("signal.statistic, for example `ttft_ms.p99`", "one of < <= > >=", "a number", "nothing more")
    for token, kinds, what in zip(found, shape, wanted, strict=False):
        if token.kind not in kinds or (token.kind == "op" and token.text not in _HOLDS):
            _refuse(text, token.start, f"{what} is wanted here")
    name, op, number = found[0], found[1], found[2]
    signal, _, statistic = name.text.partition(".")
    spec = CATALOGUE.get(signal)
    if spec is None or spec.kind not in ("number", "count"):
        numbers = [s.name for s in CATALOGUE.values() if s.kind in ("number", "count")]
        _refuse(text, name.start, f"no signal {signal!r} that is a number", did_you_mean(signal, numbers))
    if statistic not in _STATISTICS and not (statistic[:1] == "p" and statistic[1:].isdecimal() and _share(statistic)):
        _refuse(text, text.index(".", name.start) + 1, f"no statistic {statistic!r}", "mean, max, min, p50, p99, p999")
    return Objective(text, signal, statistic, op.text, _limit(text, number, signal))


def _limit(text: str, number: Token, signal: str) -> float:
    spec = attrs.evolve(CATALOGUE[signal], kind="number", lo=-math.inf, hi=math.inf)
    unit = number.unit or (spec.unit if (known := unit_of(spec.unit)) and not known.is_plain else "")
    try:
        return float(take_as(Given("number", number.text, unit), spec))
    except GivenError as error:
        _refuse(text, number.start, error.message, error.hint)


def _share(statistic: str) -> float:
    """Give 0.5 for p50, 0.999 for p999; 0 for what is no share."""
    digits = statistic[1:]
    if len(digits) > 2 and not (digits.startswith("99") and len(digits) <= 4):
        return 0.0
    return float(f"0.{digits.zfill(2)}")


def _refuse(text: str, at: int, message: str, hint: str = "") -> NoReturn:
    shown = "".join(c if c.isprintable() else " " for c in text)
    where = f"--slo, column {at + 1}: {message}"
    raise UsageError(
        "\n".join([where, f"    {shown}", "    " + " " * at + "^", *([f"    hint: {hint}"] if hint else [])])
    )
