from __future__ import annotations

import xml.etree.ElementTree as ET

from stabilitykit.cli.report.heat import COLUMNS, heat_svg
from stabilitykit.sources.latency_heat import LatencyHeat

MS = 1_000_000


def drawn(gaps_ms, bins=40):
    """Draw one request with these gaps; gives its rectangles and its texts."""
    heat, at = LatencyHeat(bins=bins, hops=10_000), 0
    heat.add("r", "first", at)
    for gap in gaps_ms:
        at += gap * MS
        heat.add("r", "token", at)
    heat.add("r", "end", at)
    svg = heat_svg(heat.map())
    root = ET.fromstring(svg) if svg else None
    return (root.findall("rect"), [t.text for t in root.findall("text")]) if root is not None else ([], [])


def test_each_count_is_a_rectangle():
    """Ten equal gaps fall into as many cells as the map has counts above 0; the axis ends at the greatest gap."""
    rects, texts = drawn([12] * 10)
    assert texts[:2] == ["0 ms", "10 ms"]
    assert len({r.get("y") for r in rects}) == 1
    assert max(float(r.get("fill-opacity")) for r in rects) == 1.0


def test_more_windows_than_columns_are_drawn_together():
    """A minute of tokens has 1,200 windows and no more columns than the chart."""
    rects, texts = drawn([20] * 3000)
    assert len({r.get("x") for r in rects}) <= COLUMNS
    assert texts[-1] == "60.0 s"


def test_the_open_bin_says_so():
    """A gap behind the last bin is drawn in it, with a plus."""
    assert drawn([500, 3], bins=4)[1][1] == "15 ms+"


def test_nothing_to_draw_is_nothing():
    """Without a gap there is no chart."""
    assert drawn([]) == ([], [])
