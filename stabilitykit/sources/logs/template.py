"""What a template is, and how the text of a field becomes its value."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import attrs

from stabilitykit.rules.conditions.units import scaled, unit_of
from stabilitykit.sources.quantities import byte_count, milliseconds

__all__ = ["KINDS", "Field", "Template", "target_of"]

KINDS: Mapping[str, str] = {
    "int": r"[-+]?[0-9]+",
    "number": r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?",
    "duration": r"(?:[0-9]+(?:\.[0-9]+)?(?:h|ms|m|\xc2\xb5s|\xce\xbcs|us|ns|s) ?)+",
    "size": r"[0-9]+(?:\.[0-9]+)? ?[kKMGT]?i?B",
    "word": r"[^\s\"',;|()\[\]{}]+",
    "path": r"/[^\s\"',;|()\[\]{}]*",
    "text": r"[^\"\n]{1,200}",
}
"""Type of a field: what it looks like. Matching is on bytes, so the micro sign is two of them."""

_TARGETS = {"us": "ms", "ms": "ms", "s": "ms", "%": "ratio", "KiB": "bytes", "MiB": "bytes", "GiB": "bytes"}
_POWERS = {"%": "e-2", "s": "e3", "us": "e-3", "ms": ""}
_UNIT = re.compile(r"(?:_per_s|_ms|_ratio|_bytes|_tokens|_c)\Z")


def target_of(kind: str, unit: str) -> str:
    """Give the unit a field is kept in: ms for times, a share for percent, bytes for sizes."""
    if kind == "duration":
        return "ms"
    return "bytes" if kind == "size" else _TARGETS.get(unit, unit)


@attrs.frozen
class Field:
    """One typed field of a pattern; ``unit`` is the unit in the text ("" where the type says it, or there is none)."""

    name: str
    kind: str
    unit: str = ""

    @property
    def target(self) -> str:
        """The unit of the value."""
        return target_of(self.kind, self.unit)

    def read(self, raw: bytes) -> float | str | None:
        """Give the value: a number in ``target``, or text; ``None`` for a number that no float64 holds.

        Examples
        --------
        >>> Field("kv_usage_ratio", "number", "%").read(b"95.9")
        0.959
        """
        try:
            value = self._value(raw.decode("utf-8", "replace").strip())
        except OverflowError:
            return None
        return value if isinstance(value, str) or math.isfinite(value) else None

    def _value(self, text: str) -> float | str:
        if self.kind == "duration":
            return milliseconds(text)
        if self.kind == "size":
            return byte_count(text)
        if self.kind not in ("int", "number"):
            return text
        if self.unit in _POWERS and "e" not in text and "E" not in text:
            return float(text + _POWERS[self.unit])  # exact, and twenty times faster than by fractions
        return scaled(text.lstrip("+"), self.unit, self.target) if self.unit in _TARGETS else float(text)

    @property
    def problem(self) -> str:
        """What is wrong with the unit, "" when it is sound: a name ends in the unit its value has."""
        if self.unit and (self.kind not in ("int", "number") or unit_of(self.unit) is None):
            return f"`{self.name}` cannot be counted in `{self.unit}`"
        ending = _UNIT.search(self.name)
        wanted = {"ms": "_ms", "ratio": "_ratio", "bytes": "_bytes", "tokens/s": "_per_s", "/s": "_per_s", "C": "_c"}
        should = wanted.get(self.target)
        if should and (ending is None or ending[0] != should):
            return f"the value of `{self.name}` is in {self.target}: its name should end in `{should}`"
        return ""


@attrs.frozen
class Template:
    """One template, checked.

    Parameters
    ----------
    id, family, desc
        Its name, the file it stands in, one sentence.
    pattern, regex, literal
        As written; as google-re2 gets it; the text without which it cannot match.
    fields, required
        Typed fields in order, and those that count for the confidence.
    behaviours
        Dimension by behaviour; the first is the main one. Empty for a status line or an ordinary one.
    prior
        Share of such lines that mean it, when every required field is there.
    priority, specificity
        Greater goes first; a negative priority speaks only when nothing else does. Then literal characters, then id.
    signals
        Fields that are signals of a replica.
    is_periodic
        True for a line that only a series can judge.
    sources, threads
        Where the text was taken from: files of the server that print it, public threads that quote it.
    """

    id: str
    family: str
    desc: str
    pattern: str
    regex: bytes
    literal: bytes
    ignore_case: bool
    fields: tuple[Field, ...]
    required: frozenset[str]
    behaviours: Mapping[str, str]
    prior: float
    priority: int
    specificity: int
    signals: tuple[str, ...]
    is_periodic: bool
    sources: tuple[str, ...]
    threads: tuple[str, ...]

    @property
    def rank(self) -> tuple[int, int, str]:
        """Order of templates: smaller goes first."""
        return (-self.priority, -self.specificity, self.id)

    def confidence(self, filled: Mapping[str, object]) -> float:
        """Give filled required fields / required fields x prior (A3.3)."""
        if not self.required:
            return self.prior
        return self.prior * (sum(name in filled for name in self.required) / len(self.required))
