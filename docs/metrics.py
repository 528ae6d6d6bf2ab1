"""The page of metrics that `stabilitykit.sources.prometheus` understands, from its table."""

from __future__ import annotations

from collections.abc import Iterator

from docs.tables import table
from stabilitykit.signals import CATALOGUE
from stabilitykit.sources.prometheus import DERIVED, TABLE
from stabilitykit.sources.prometheus.names import Row

HOW = {
    "gauge": "its value",
    "counter": "its value, going on over restarts",
    "rate": "its increase a second",
    "mean": "its increase / that of {over}",
    "share": "its increase / (its own + that of {over})",
}
HEAD = """\
# Metrics of servers

What a page of each server becomes: the first metric that has a value is used, newest names first. Pages with
underscores for colons, and counters without `_total`, are understood too. Increases are between two pages.

"""


def page() -> str:
    """Render the table, a section for each server."""
    return HEAD + "\n".join(_server(name) for name in dict.fromkeys(row.server for row in TABLE))


def _server(name: str) -> str:
    rows = [cells for row in TABLE if row.server == name for cells in [_cells(row)]]
    rows += [
        (f"`{d.signal}`", CATALOGUE[d.signal].unit, " ".join(f"`{m}`" for m in d.metrics), d.how)
        for d in DERIVED
        if d.server == name
    ]
    return f"## {name}\n\n" + table(("signal", "unit", "metric", "how"), rows)


def _cells(row: Row) -> tuple[str, str, str, str]:
    over = " ".join(f"`{m}`" for m in row.over)
    return (
        f"`{row.signal}`",
        CATALOGUE[row.signal].unit,
        " ".join(f"`{m}`" for m in row.metrics),
        ", ".join(filter(None, [HOW[row.form].format(over=over), *_unit(row)])),
    )


def _unit(row: Row) -> Iterator[str]:
    if row.unit == "ratio or percent":
        yield f"a percentage above 1 and beside `{row.percent_beside}`, else a ratio"
    elif row.unit and row.unit != CATALOGUE[row.signal].unit:
        yield f"in {row.unit}"
