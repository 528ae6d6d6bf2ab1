"""What a subject of the accuracy harness answers, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

KINDS = ("trivial", "source", "reference", "ours", "check")
"""Trivial baselines, the source's method, the best of the reference pages, ours; a check is permuted labels."""


@attrs.frozen
class Line:
    """What one method reaches on one set of data; ``intervals`` are 95 %."""

    of: str
    method: str
    kind: str = attrs.field(validator=attrs.validators.in_(KINDS))
    figures: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]] = attrs.field(factory=dict)


@attrs.frozen
class Target:
    """A figure that was asked for, and the one reached (the cross-validated mean)."""

    what: str
    wanted: float
    reached: float
    at_least: bool = True

    @property
    def is_met(self) -> bool:
        """Whether the figure is on the right side; a figure that is no number is not."""
        return self.reached >= self.wanted if self.at_least else self.reached <= self.wanted


@attrs.frozen
class Report:
    """One run of a subject."""

    lines: Sequence[Line]
    targets: Sequence[Target] = ()
    notes: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON values."""
        return {
            "lines": [attrs.asdict(line) for line in self.lines],
            "targets": [{**attrs.asdict(t), "is_met": t.is_met} for t in self.targets],
            "notes": list(self.notes),
        }


def cell(line: Mapping[str, Any], figure: str) -> str:
    """Give one figure of a line with its interval."""
    if figure not in line["figures"]:
        return ""
    text = f"{line['figures'][figure]:.4g}"
    if figure in line["intervals"]:
        low, high = line["intervals"][figure]
        text += f" [{low:.3g}, {high:.3g}]"
    return text


def tables(found: Mapping[str, Any]) -> list[str]:
    """Give Markdown: one table for each set of columns, then the targets and the notes."""
    text: list[str] = []
    columns: tuple[str, ...] | None = None
    for line in found["lines"]:
        if tuple(line["figures"]) != columns:
            columns = tuple(line["figures"])
            text += ["", "| data | method | kind | " + " | ".join(columns) + " |", "|---" * (3 + len(columns)) + "|"]
        cells = " | ".join(cell(line, c) for c in columns)
        text.append(f"| {line['of']} | {line['method']} | {line['kind']} | {cells} |")
    if found["targets"]:
        text += ["", "| wanted | figure | reached | |", "|---|---|---|---|"]
    for t in found["targets"]:
        side = "at least" if t["at_least"] else "at most"
        text.append(
            f"| {t['what']} | {side} {t['wanted']:g} | {t['reached']:.4g} | {'met' if t['is_met'] else 'missed'} |"
        )
    text += [line for note in found["notes"] for line in ("", note)]
    return [*text, ""]
