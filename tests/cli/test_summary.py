"""What a replay came to."""

from __future__ import annotations

from stabilitykit.cli.summary import Summary
from stabilitykit.engine import Engine
from stabilitykit.engine.replay import Entry, replay
from stabilitykit.sample import Sample
from stabilitykit.turn import Turn


def summary_of(pack, entries):
    """Replay entries and count."""
    engine = Engine.load(str(pack), compiled=False)
    found = Summary(engine.pack)
    for step in replay(engine, entries):
        found.add(step)
    return found


def test_counts(pack):
    """Turns, samples, sessions, states, matches and fires, faults."""
    entries: list[Entry] = [
        Turn(session_id="a", ttft_ms=2000.0),
        Turn(session_id="a", ttft_ms=-1.0),
        Turn(session_id="b"),
    ]
    entries += [Sample(replica="r", signals={"waiting_requests": 9.0})] * 2
    found = summary_of(pack, entries).to_dict(7)
    assert (found["turns"], found["samples"], found["sessions"], found["bad_lines"]) == (3, 2, 2, 7)
    assert found["states"]["session"] == {"healthy": 1, "warning": 2}
    assert found["rules"] == {
        "ttft-slow": {"matched": 2, "fired": 1},
        "replica-busy": {"matched": 2, "fired": 1},
    }
    assert found["faults"] == [{"kind": "invalid", "signal": "ttft_ms", "count": 1}]


def test_reached(pack):
    """A state counts as reached in any scope."""
    found = summary_of(pack, [Turn(session_id="a", ttft_ms=2000.0)])
    assert found.reached("warning")
    assert not found.reached("broken")


def test_text(pack, capsys):
    """The text says the same, for sessions and for the scopes that have rules."""
    summary_of(pack, [Turn(session_id="a"), Sample(replica="r", signals={"waiting_requests": 1.0})]).show()
    out = capsys.readouterr().out
    assert "1 turn of 1 session, 1 sample" in out
    assert "replica states by samples: healthy 1" in out
    assert "device" not in out
