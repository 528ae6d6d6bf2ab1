from __future__ import annotations

import json

import pytest

from stabilitykit.cli.calibrate.thresholds import furthest
from stabilitykit.sample import Sample
from stabilitykit.turn import Turn


def turns(session, values):
    """Give turns of one session with these gaps; None is a turn without."""
    return [Turn(session_id=session) if v is None else Turn(session_id=session, itl_ms=v) for v in values]


def test_furthest_is_what_a_rule_compares():
    """The greatest value that N turns in a row reach; an unknown turn neither adds nor interrupts."""
    entries = [
        *turns("a", [10.0, 90.0, None, 80.0, 20.0, 85.0]),
        Sample(replica="r", timestamp_s=0.0, signals={"kv_usage_ratio": 0.5}),
        *turns("b", [50.0]),
        *turns("c", [None, float("nan")]),
    ]
    assert furthest(entries, ["itl_ms"], 1) == {"itl_ms": [90.0, 50.0]}
    assert furthest(entries, ["itl_ms"], 2) == {"itl_ms": [80.0]}
    assert furthest(entries, ["itl_ms"], 2, below=True) == {"itl_ms": [-80.0]}


def test_two_tenants():
    """Turns of one session id in two tenants are no row of one session."""
    entries = [Turn(session_id="a", tenant=t, itl_ms=v) for t, v in (("one", 10.0), ("two", 90.0), ("one", 20.0))]
    assert furthest(entries, ["itl_ms"], 1) == {"itl_ms": [20.0, 90.0]}
    assert furthest(entries, ["itl_ms"], 2) == {"itl_ms": [10.0]}


@pytest.fixture
def healthy(tmp_path):
    """Write a recording of 120 sessions; the greatest gap of session k is 40 + k ms."""
    path = tmp_path / "healthy.jsonl"
    rows = [{"session_id": f"s{k}", "itl_ms": 40.0 + k * share} for k in range(120) for share in (0.5, 1.0)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.capability("issue 6: `calibrate thresholds`: threshold, watch-only, spread over recordings")
def test_thresholds(run, healthy):
    """At 1 % the second greatest of 120 sessions at the most; the spread is told; the table says so too."""
    told = run("calibrate", "thresholds", healthy, "--json").records[0]["itl_ms"]
    assert told["value"] == 40.0 + 119
    assert told["sessions"] == 120
    assert 0 < told["low"] < told["mean"] < 0.01 < told["high"] < 0.04
    ran = run("calibrate", "thresholds", healthy, "--false-rate", "0.05", "--for", "2")
    assert ran.code == 0
    assert "itl_ms" in ran.out
    assert "2 turns in a row" in ran.out


def test_less_is_worse(run, healthy):
    """With --below the threshold is at the other end."""
    told = run("calibrate", "thresholds", healthy, "--below", "--signal", "itl_ms", "--json").records[0]["itl_ms"]
    assert told["value"] == 40.0


def test_watch_only(run, healthy):
    """120 sessions do not bear one in a thousand: no threshold, and exit code 1."""
    ran = run("calibrate", "thresholds", healthy, "--false-rate", "0.001")
    assert ran.code == 1
    assert "watch only" in ran.out
    assert "120 of 999" in ran.out
    ran = run("calibrate", "thresholds", healthy, "--signal", "nonsense")
    assert ran.code == 2
