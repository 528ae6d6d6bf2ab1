"""Markdown tables, and how a domain reads in one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from stabilitykit.decision import ParamSpec
from stabilitykit.signals import OutputSpec, SettingSpec, SignalSpec


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a Markdown table; a bar inside a cell is escaped."""
    lines = [list(head), ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def _number(value: float) -> str:
    return f"{value:g}" if math.isfinite(value) else ("-∞" if value < 0 else "∞")


def domain(spec: SignalSpec | OutputSpec | SettingSpec | ParamSpec) -> str:
    """Say which values are valid: words, a range, or nothing."""
    words = getattr(spec, "values", ())
    if words:
        return " ".join(f"`{word}`" for word in words)
    if spec.kind in ("array", "bool", "file", "word") or (spec.lo, spec.hi) == (-math.inf, math.inf):
        return ""
    return f"{_number(spec.lo)} … {_number(spec.hi)}"
