"""A page of hit ratios over cache sizes: one line a policy, the bound dashed, and the figures as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import attrs
from jinja2 import Environment, PackageLoader, StrictUndefined

from stabilitykit import __version__
from stabilitykit.cli.report.chart import Tick

__all__ = ["render_ratios"]

LEFT, RIGHT, TOP, HEIGHT, FOOT = 56.0, 830.0, 12.0, 320.0, 26.0
COLOURS = ("#2563c9", "#d9752b", "#2f9e63", "#7a3fc4", "#d43d3d", "#0f7f86", "#b0872a", "#6d7a8c", "#c2478f")


@attrs.frozen
class Course:
    """One policy's line, and where its name stands."""

    name: str
    path: str
    colour: str
    label_at: float
    is_bound: bool


@attrs.frozen
class Plot:
    """Everything to draw."""

    rows: Sequence[Tick]
    columns: Sequence[Tick]
    courses: Sequence[Course]
    left: float = LEFT
    right: float = RIGHT
    height: float = TOP + HEIGHT + FOOT


def render_ratios(title: str, text: str, sizes: Sequence[int], ratios: Mapping[str, Sequence[float]]) -> str:
    """Write the page.

    Parameters
    ----------
    title, text
        Heading, and what was simulated; escaped.
    sizes
        Cache sizes in blocks, ascending.
    ratios
        Hit ratios in [0, 1] by policy, one for each size.
    """
    env = Environment(loader=PackageLoader("stabilitykit.cli", "report"), autoescape=True, undefined=StrictUndefined)
    rows = [[name, *(f"{100 * ratio:.2f} %" for ratio in found)] for name, found in ratios.items()]
    head = ["policy", *(f"{size:,}" for size in sizes)]
    page = env.get_template("ratios.html.j2")
    return page.render(title=title, text=text, plot=_plot(sizes, ratios), head=head, rows=rows, version=__version__)


def _plot(sizes: Sequence[int], ratios: Mapping[str, Sequence[float]]) -> Plot:
    highest = max((ratio for found in ratios.values() for ratio in found), default=0.0)
    top = max(math.ceil(highest * 20) / 20, 0.05)
    low, high = math.log(sizes[0]), math.log(max(sizes[-1], sizes[0] + 1))

    def x(size: int) -> float:
        return round(LEFT + (math.log(size) - low) / (high - low) * (RIGHT - LEFT), 1)

    def y(ratio: float) -> float:
        return round(TOP + HEIGHT * (1 - ratio / top), 1)

    courses, last = [], -math.inf
    for k, (name, found) in sorted(enumerate(ratios.items()), key=lambda one: -one[1][1][-1]):
        path = "".join(
            f"{'L' if n else 'M'}{x(size):g} {y(r):g}" for n, (size, r) in enumerate(zip(sizes, found, strict=True))
        )
        last = max(y(found[-1]) + 4, last + 13)  # names of lines that end together stand below each other
        courses.append(Course(name, path, COLOURS[k % len(COLOURS)], last, name == "belady"))
    marks = [Tick(y(top * k / 4), f"{100 * top * k / 4:.3g} %") for k in range(5)]
    return Plot(marks, [Tick(x(size), f"{size:,}") for size in sizes], courses)
