"""How the coverage of a pack is printed."""

from __future__ import annotations

from typing import Any

import attrs

from stabilitykit.cli.output import line, plain
from stabilitykit.engine.coverage import Coverage

__all__ = ["as_dict", "show_coverage"]


def show_coverage(coverage: Coverage | None) -> None:
    """Print the share that was shown, and what was not."""
    if coverage is None:
        return
    parts = [f"{what} {shown}/{of}" for what, (shown, of) in coverage.counts().items() if of]
    unknown = sum(x.is_unknown for x in coverage.comparisons)
    if coverage.comparisons:
        parts.append(f"{unknown} of {len(coverage.comparisons)} comparisons also seen unknown")
    style = "green" if coverage.ratio == 1.0 else "bold red"
    # Rounded down: 100 % means all.
    line(
        "  coverage ",
        (f"{int(1000 * coverage.ratio) / 10:g} %", style),
        f": {', '.join(parts) or 'nothing of its own'}",
    )
    for gap in coverage.gaps():
        line("    ", (plain(gap), "yellow"))


def as_dict(coverage: Coverage) -> dict[str, Any]:
    """Give the coverage as JSON values."""
    return {
        "ratio": coverage.ratio,
        "counts": {what: {"shown": shown, "of": of} for what, (shown, of) in coverage.counts().items()},
        "comparisons": [attrs.asdict(x) for x in coverage.comparisons],
        "rules": [attrs.asdict(r) for r in coverage.rules.values()],
        "states": coverage.states,
        "transitions": [attrs.asdict(e) for e in coverage.edges.values()],
        "gaps": list(coverage.gaps()),
    }
