"""The report on a terminal and as JSON, and its exit codes."""

from __future__ import annotations

import re

import pytest

from stabilitykit import Engine, Turn
from stabilitykit.rollout import Arms, Rollout
from tests.rollout.test_report import trial, write


@pytest.mark.capability("issue 5 §6: `stabilitykit rollout report FILE`: table, verdict, sample-size hint, --json")
def test_better(run, tmp_path):
    """The table has a row for each finding, the verdict is the last line, and JSON holds the same numbers."""
    acted = {"kind": "outcome", "session": "control-1", "turn": 7, "arm": "control", "ok": None, "tags": {}}
    file = write(tmp_path / "r.jsonl", *trial(1, 300, (0.25, 0.08)), {**acted, "applied": ["throttle"]})
    ran = run("rollout", "report", file)
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "verdict: the treatment is better")
    assert "reference_error (share)" in ran.out
    assert re.search(r"carried out throttle\W+1\W+0", ran.out)
    (told,) = run("rollout", "report", file, "--json").records
    assert (told["verdict"], told["mode"]) == ("better", "ab")
    first = told["outcomes"][0]
    assert first["name"] == "not ok"
    assert f"{first['control']['value']:.1%} of 300" in ran.out
    assert first["interval"][0] < first["difference"] < first["interval"][1] < 0


def test_worse_is_a_finding(run, tmp_path):
    """A treatment that is worse ends with code 1."""
    ran = run("rollout", "report", write(tmp_path / "r.jsonl", *trial(1, 300, (0.08, 0.25))))
    assert (ran.code, "the treatment is worse" in ran.out) == (1, True)


def test_a_hint(run, tmp_path):
    """Where nothing is shown the verdict says how many conversations would show it."""
    ran = run("rollout", "report", write(tmp_path / "r.jsonl", *trial(2, 40, (0.30, 0.18))))
    assert "verdict: no difference shown; a difference like the one seen needs" in ran.out
    assert ran.code == 0


def test_shadow(run, tmp_path):
    """A shadow's report counts what both packs decided."""
    path = tmp_path / "r.jsonl"
    with Rollout(Engine.load("chat"), Engine.load("api"), path, Arms(b"key"), mode="shadow") as rollout:
        for speed in (40.0,) * 6:
            rollout.evaluate(Turn(session_id="c-1", itl_ms=speed))
    ran = run("rollout", "report", path)
    assert ran.out.startswith("shadow: 6 turns of 1 conversations\n")
    assert "the packs differ on 0 turns (0.0%)" in ran.out


def test_no_record(run, tmp_path):
    """A file that is no record is wrong use."""
    assert run("rollout", "report", tmp_path / "none.jsonl").code == 2


def test_deeply_nested(run, tmp_path):
    """A line of JSON deeper than Python reads is no record."""
    path = tmp_path / "deep.jsonl"
    path.write_text("[" * 200_000 + "\n")
    ran = run("rollout", "report", path)
    assert (ran.code, "deep.jsonl:1: no JSON" in ran.err) == (2, True)
