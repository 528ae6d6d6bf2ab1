"""Values that a tool call may need again: numbers of orders, dates, names of records; and what each is worth.

The chance that a value is an argument of the next call is a logistic function of what it looks like and where it stood,
fitted on the recorded tool dialogues; ``benchmarks/subjects/context_tools.py`` fits it again on every run, and scores
no value of a task that it was fitted on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

__all__ = ["WEIGHTS", "Mention", "chance", "features", "gather", "values_of"]

_VALUE = re.compile(r"\w+(?:[-_.:@]\w+)*")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_NUMBER = re.compile(r"[\d.:,-]+")
FADING = 8.0
"""Units after which what was said last counts for the e-th part."""
FEATURES = (
    "count",
    "latest",
    "recent",
    "user",
    "assistant",
    "argument",
    "tool",
    "date",
    "joined",
    "code",
    "number",
    "plain",
)
WEIGHTS: tuple[float, ...] = (-7.53, 0.451, -1.09, 1.19, 0.959, 0.515, 0.913, 1.5, 4.09, 2.07, 2.17, -1.59, -0.796)
"""Constant, then one for each of ``FEATURES``."""


def values_of(text: str) -> frozenset[str]:
    """Give the identifiers and words of a text that may be arguments.

    Examples
    --------
    >>> sorted(values_of("Book HAT136 on 2024-05-20 for mia_li_3668"))
    ['2024-05-20', 'Book', 'HAT136', 'mia_li_3668']
    """
    return frozenset(
        value for value in set(_VALUE.findall(text)) if len(value) >= 4 or (len(value) == 3 and _is_marked(value))
    )


def _is_marked(value: str) -> bool:
    return "_" in value or "@" in value or value.isupper() or any(map(str.isdigit, value))


@attrs.define
class Mention:
    """Where a value stood: in how many units, the latest of them, and who said it (user, assistant, call, tool)."""

    units: list[int] = attrs.field(factory=list)
    by: set[str] = attrs.field(factory=set)


def gather(said: Sequence[Sequence[tuple[str, frozenset[str]]]]) -> dict[str, Mention]:
    """Collect the mentions of each value: for every unit, who said which values."""
    found: dict[str, Mention] = {}
    for k, unit in enumerate(said):
        for who, values in unit:
            for value in sorted(values):
                mention = found.setdefault(value, Mention())
                mention.by.add(who)
                if not mention.units or mention.units[-1] != k:
                    mention.units.append(k)
    return found


def features(mentions: Mapping[str, Mention], units: int) -> NDArray[np.float64]:
    """Give one row a value: 1, then ``FEATURES``."""
    rows = []
    for value, mention in mentions.items():
        age = units - 1 - mention.units[-1]
        has_digit = any(map(str.isdigit, value))
        rows.append(
            (
                1.0,
                math.log(len(mention.units)),
                age <= 0,
                math.exp(-age / FADING),
                *(who in mention.by for who in ("user", "assistant", "argument", "tool")),
                _DATE.fullmatch(value) is not None,
                has_digit and "_" in value,
                has_digit and value.isalnum() and value.isupper(),
                _NUMBER.fullmatch(value) is not None,
                not _is_marked(value),
            )
        )
    return np.array(rows, np.float64).reshape(-1, 1 + len(FEATURES))


def chance(mentions: Mapping[str, Mention], units: int, weights: Sequence[float] = WEIGHTS) -> NDArray[np.float64]:
    """Give the chance of each value to be needed by the next call."""
    return np.asarray(1 / (1 + np.exp(-(features(mentions, units) @ np.asarray(weights)))))
