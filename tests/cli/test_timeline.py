"""The timeline of a replay."""

from __future__ import annotations

import pytest

from stabilitykit.cli.timeline import Timeline, label
from stabilitykit.engine import Engine
from stabilitykit.engine.replay import replay
from stabilitykit.turn import Turn


@pytest.mark.parametrize(
    ("session", "expected"),
    [
        ("c-1", "c-1"),
        ("6d382375-31ed-4139-8133-f6bab8d348c4", "6d382375"),
        ("x" * 40, "x" * 23 + "…"),
        (b"\x01\x02", "0102"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
    ],
)
def test_label(session, expected):
    """Names are short and printable."""
    assert label(session) == expected


def test_interleaved_sessions_keep_their_quiet_runs(pack, capsys):
    """Each session's quiet turns share one line, whoever comes between."""
    engine = Engine.load(str(pack), compiled=False)
    timeline = Timeline(engine.pack)
    for step in replay(engine, [Turn(session_id=s, itl_ms=30.0) for s in "abab"]):
        timeline.show(step)
    timeline.close()
    assert [line.split() for line in capsys.readouterr().out.splitlines()[3:]] == [
        ["a", "turns", "1-2", "healthy"],
        ["b", "turns", "1-2", "healthy"],
    ]


def test_what_goes_on_is_not_repeated(pack, capsys):
    """A rule that only goes on matching is named once; what is kept says so."""
    engine = Engine.load(str(pack), compiled=False)
    timeline = Timeline(engine.pack)
    for step in replay(engine, [Turn(session_id="a", ttft_ms=2000.0) for _ in range(4)]):
        timeline.show(step)
    timeline.close()
    out = capsys.readouterr().out
    assert out.count("ttft-slow") == 1
    assert "turns 2-4     warning" in out


@pytest.mark.capability("issue 3 §3: the timeline says what its lines mean")
def test_the_timeline_is_explained_once(pack, capsys):
    """Before the first line stands what the columns, `*`, `5/3` and `do` mean; nothing at all without a line."""
    engine = Engine.load(str(pack), compiled=False)
    timeline = Timeline(engine.pack)
    timeline.close()
    assert capsys.readouterr().out == ""
    for step in replay(engine, [Turn(session_id="a", itl_ms=70.0) for _ in range(3)]):
        timeline.show(step)
    timeline.close()
    out = capsys.readouterr().out
    assert out.startswith("conversation turn ")
    assert out.count("5/3: its condition held on 5 turns, 3 are needed") == 1
    assert "* itl-slow" in out
