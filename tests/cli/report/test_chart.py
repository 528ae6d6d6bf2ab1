"""The geometry of charts."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.cli.report.chart import WIDTH, draw
from stabilitykit.cli.report.series import CURVES, Track

STATES = ("healthy", "warning", "broken")
value = st.one_of(st.just(float("nan")), st.floats(0, 1e12))


@given(st.lists(st.tuples(value, value, value, st.integers(0, 2)), min_size=1, max_size=60), st.integers(0, 10**9))
def test_everything_lies_inside(rows, first):
    """Whatever was measured, every mark is on the canvas and every path is made of numbers."""
    track = Track("c", "session")
    track.at = list(range(first, first + len(rows)))
    for k in range(3):
        track.values[k].extend(row[k] for row in rows)
    track.states = [row[3] for row in rows]
    track.fired = [(first, "a-rule")]
    chart = draw(track, STATES)
    assert len(chart.panels) == len(CURVES["session"])
    for panel in chart.panels:
        assert re.fullmatch(r"([ML][\d.e+]+ [\d.e+]+)*", panel.path)
        for dot in panel.dots:
            assert 0 <= dot.x <= WIDTH
            assert panel.top - 0.01 <= dot.y <= panel.top + panel.height + 0.01
    assert all(s.x >= 0 and s.x + s.width <= WIDTH for s in chart.stretches)
    assert sum(s.width for s in chart.stretches) > 0


def test_single_turn():
    """One turn is a point, not a line; it still shows."""
    track = Track("c", "replica")
    track.at, track.states = [5], [0]
    track.values[0].append(3.0)
    track.values[1].append(float("nan"))
    track.values[2].append(50.0)
    first, empty, _ = draw(track, STATES).panels
    assert len(first.lone) == 1
    assert empty.is_empty
