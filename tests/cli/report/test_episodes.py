"""Rows of the table of matches."""

from __future__ import annotations

from stabilitykit.cli.report.episodes import Episodes
from stabilitykit.engine import Engine
from stabilitykit.turn import Turn


def episodes(pack, series, most=100):
    """Collect the episodes of a series of inter-token latencies."""
    engine, found = Engine.load(str(pack), compiled=False), Episodes(most)
    for k, itl in enumerate(series, 1):
        decision = engine.evaluate(Turn(session_id="c", ttft_ms=itl))
        found.add(decision, k, 0)
    return found


def test_consecutive_matches_are_one_row(pack):
    """A stretch is one row with its worst value; a gap starts another."""
    found = episodes(pack, [2000.0, 5000.0, 3000.0, 10.0, 1500.0])
    assert [(r.when, r.value, r.margin, r.run) for r in found.rows] == [
        ("turns 1-3", "5000 ms", "4000 ms", "3/1"),
        ("turn 5", "1500 ms", "500 ms", "1/1"),
    ]
    assert found.rows[0].actions[0][:2] == ("emit_metric", "rule:ttft-slow")


def test_rows_are_bounded_but_counted(pack):
    """A long log does not fill the page."""
    found = episodes(pack, [2000.0, 10.0] * 20, most=5)
    assert (len(found.rows), found.count) == (5, 20)
