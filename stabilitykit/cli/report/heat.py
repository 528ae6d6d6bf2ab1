"""The heat map of token gaps as one SVG element: time to the right, gap upwards, darker where more tokens came."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stabilitykit.sources.latency_heat import BIN_NS, HeatMap

__all__ = ["heat_svg"]

LEFT, TOP, WIDTH, ROW, FOOT = 64.0, 6.0, 960.0, 9.0, 26.0
COLUMNS = 240
"""More windows than this are drawn together, the greatest count of each."""


def heat_svg(heat: HeatMap) -> str:
    """Draw a heat map.

    Parameters
    ----------
    heat
        What ``LatencyHeat.map`` gave; bins above the greatest gap are left out.

    Returns
    -------
    str
        An ``<svg>`` element in ``currentColor``, without any foreign text; "" when there is no gap to draw.
    """
    if not heat.gaps.any():
        return ""
    counts = _merged(heat.gaps[:, : int(np.flatnonzero(heat.gaps.any(axis=0))[-1]) + 1])
    height = TOP + ROW * counts.shape[1] + FOOT
    seconds = (heat.start_ns[-1] - heat.start_ns[0]) / 1e9
    marks = [*_cells(counts), *_labels(counts.shape[1], heat.gaps.shape[1], seconds)]
    return f'<svg viewBox="0 0 {WIDTH:g} {height:g}" role="img" fill="currentColor">{"".join(marks)}</svg>'


def _merged(gaps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw no more columns than can be told apart."""
    step = math.ceil(len(gaps) / COLUMNS)
    return np.maximum.reduceat(gaps, np.arange(0, len(gaps), step), axis=0)


def _cells(counts: NDArray[np.int64]) -> Iterator[str]:
    """Give a rectangle for each count above 0; its opacity grows with the logarithm, so that one token is seen."""
    width, most = (WIDTH - LEFT) / len(counts), math.log1p(int(counts.max()))
    for column, row in np.argwhere(counts > 0).tolist():
        shade = 0.15 + 0.85 * math.log1p(int(counts[column, row])) / most
        x, y = LEFT + column * width, TOP + (counts.shape[1] - 1 - row) * ROW
        yield f'<rect x="{x:.2f}" y="{y:g}" width="{width:.2f}" height="{ROW:g}" fill-opacity="{shade:.2f}"/>'


def _labels(rows: int, bins: int, seconds: float) -> Iterator[str]:
    """Name the lowest and the highest bin, and how long the map is; the last bin of all is open."""
    size = BIN_NS // 1_000_000
    top = f"{(rows - 1) * size} ms" + ("+" if rows == bins else "")
    for y, text in ((TOP + ROW * rows, "0 ms"), (TOP + ROW, top)):
        yield f'<text x="{LEFT - 8:g}" y="{y:g}" text-anchor="end" font-size="11">{text}</text>'
    bottom = TOP + ROW * rows + 16
    yield f'<text x="{LEFT:g}" y="{bottom:g}" font-size="11">0 s</text>'
    yield f'<text x="{WIDTH:g}" y="{bottom:g}" text-anchor="end" font-size="11">{seconds:.1f} s</text>'
