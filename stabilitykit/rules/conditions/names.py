"""What a condition may refer to, and the list of what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from stabilitykit.rules.conditions.lexer import Near, SyntaxProblem
from stabilitykit.rules.pack import ParamValue
from stabilitykit.signals import DetectorSpec, SignalSpec

__all__ = ["Names", "Problems"]


@attrs.frozen
class Names:
    """The names of a pack.

    Parameters
    ----------
    signals
        The catalogue and the signals that the pack declares.
    detectors
        By id: what it is, and the scope of its memory.
    params
        With the values in force.
    rules
        Scope by id; None when the rule was not checked or is broken.
    disabled
        Rules that ``enabled: false`` removed.
    """

    signals: Mapping[str, SignalSpec]
    detectors: Mapping[str, tuple[DetectorSpec, str]] = attrs.field(factory=dict)
    params: Mapping[str, ParamValue] = attrs.field(factory=dict)
    rules: Mapping[str, str | None] = attrs.field(factory=dict)
    disabled: frozenset[str] = frozenset()


@attrs.frozen
class Problems:
    """Collects mistakes of one text."""

    found: list[SyntaxProblem]

    def add(self, code: str, offset: int, end: int, message: str, hint: str = "", near: Near | None = None) -> None:
        """Report a mistake at a part of the text, each place and code once."""
        if not any(known.code == code and known.offset == offset for known in self.found):
            self.found.append(SyntaxProblem(code, offset, end - offset, message, hint, near))
