"""Answers of broken servers, hanging servers, and calm ones: what the output detectors say of other people's data."""

from __future__ import annotations

import json

import pytest

from benchmarks.subjects import trends
from benchmarks.subjects.degeneration import characters, reported, words


@pytest.mark.capability("issue 3 §1: loops that users reported from SGLang, vLLM and MLX are called")
def test_reported_loops_are_called(shared_data):
    """All three loops are called, with characters and with words as tokens; gibberish is none."""
    lines = (shared_data / "responses" / "degenerate_outputs.jsonl").read_text(encoding="utf-8").splitlines()
    is_loop = [json.loads(line)["kind"] == "repetition_loop" for line in lines]
    for tokens in (characters, words):
        called = [answer.told["is_degenerate"] == 1 for answer in reported(shared_data, tokens)]
        assert called == is_loop
    assert len(is_loop) == 4


@pytest.mark.capability("issue 3 §1: no progress, two real hangs of a server are called before the client gave up")
def test_real_hangs_are_called(shared_data):
    """Both clients gave up after 45 s; the hangs are called after 13 s and, with one warm turn, after 40 s."""
    rows = list(trends.hangs(shared_data).values())
    assert [row["called after, s"] for row in rows] == [13, 40]
    assert all(row["silence until the client gave up, s"] >= 44.9 for row in rows)


def test_calm_endpoints_have_no_cliff(shared_data):
    """Hosted endpoints: no turn is a cliff, and noise never makes a ramp of four turns."""
    rows = trends.endpoints(shared_data)
    assert len(rows) >= 11
    assert sum(row["turns"] for row in rows.values()) > 1400
    assert {row["cliffs"] for row in rows.values()} == {0}
    assert max(row["row w=8"] for row in rows.values()) == 3


def test_calm_replica_does_not_leak(shared_data):
    """Eight load levels of one vLLM server: fewer than ten samples in a row, none at a level that matters."""
    rows = trends.replica(shared_data)
    assert len(rows) == 8
    assert max(row["leaks in a row"] for row in rows.values()) < 10
    assert {row["leaks above 80%"] for row in rows.values()} == {0}


def test_full_cache_is_foreseen(shared_data):
    """The one run whose third sample passed 96 % was called from the first two; most thirds are met within a point."""
    (row,) = trends.bursts(shared_data).values()
    errors = [abs(e) for e in row["error of the third, points"]]
    assert row["first at 96 % on the third"] == row["of these called before"] == 1
    assert sorted(errors)[len(errors) // 2] < 1.0
