"""Writes the measured figures into docs/explanation/hot-path.md, between two marks.

``python -m benchmarks.report``; ``python -m benchmarks`` does it at its end.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "explanation" / "hot-path.md"
KEPT = ROOT / "docs" / "figures.json"
NEW = ROOT / "build" / "figures"
FIRST, LAST = "<!-- figures: make bench -->", "<!-- end of figures -->"


def known() -> dict[str, Any]:
    """The committed figures, updated by those measured here."""
    found = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for path in sorted(NEW.glob("*.json")):
        found |= json.loads(path.read_text())
    return found


def block(figures: dict[str, Any]) -> str:
    """The table, with its marks."""
    lines = [FIRST, "", "| what | measured | at most | target | how | day |", "|---|---|---|---|---|---|"]
    for figure in figures.values():
        if "what" in figure:  # figures of other origins have their own places
            lines.append(
                f"| {figure['what']} | {figure['value']:g} | {_target(figure)} | {figure['note']} | {figure['day']} |"
            )
    return "\n".join([*lines, "", LAST])


def _target(figure: dict[str, Any]) -> str:
    """Give two cells: at most how much, and whether it is met."""
    if "target" not in figure:
        return " | "
    return f"{figure['target']:g} | {'met' if figure['value'] <= figure['target'] else 'missed'}"


def write() -> None:
    page = PAGE.read_text()
    before, _, rest = page.partition(FIRST)
    after = rest.partition(LAST)[2]
    PAGE.write_text(before + block(known()) + after)


if __name__ == "__main__":
    write()
