"""Thirteen hosted endpoints, each replayed as one conversation."""

from __future__ import annotations

import pytest

from benchmarks.subjects.replay_real import Row, llmperf, llmperf_turns


@pytest.fixture(scope="module")
def found(shared_data) -> Row:
    """Give what `chat` says about every endpoint."""
    return llmperf(shared_data)


@pytest.mark.capability("issue 2 §7: 13 hosted endpoints replayed, false alarms counted")
def test_calm_halves_raise_at_most_two_alarms_in_a_thousand_turns(found):
    """The best of the measured methods had 1.7 false alarms in 1,000 turns (formulas A4.4)."""
    assert found["calm_turns"] > 900
    assert found["false_alarms_per_1000_calm_turns"] <= 1.7


def test_every_endpoint_is_there(found):
    """13 endpoints, 150 requests each."""
    assert [row["turns"] for row in found["endpoints"].values()] == [150] * 13


def test_refusals_are_called_on_the_second(found):
    """An endpoint that refuses again and again is called on the refusal after the first; one failure is not."""
    rows = found["endpoints"]
    repeated = [row for row in rows.values() if row["refused"] > 1]
    assert len(repeated) == 3
    assert all(row["first_called"] == row["first_refused"] + 1 for row in repeated)
    assert [row["first_called"] for row in rows.values() if row["refused"] == 1] == [None]


def test_a_slowdown_would_have_been_seen(found):
    """Slowed down threefold or more, every endpoint is called within four answers; the silence above is no deafness."""
    for factor in ("3.0", "5.0"):
        assert found["slowed_by"][factor]["missed"] == 0
        assert found["slowed_by"][factor]["median_answers"] <= 4


def test_an_answer_shorter_than_the_benchmark_wanted_is_no_error(shared_data):
    """Code -100 is the benchmark's own; its gaps are computed, not taken from a column that holds the whole time."""
    turns = llmperf_turns(shared_data)["bedrock_13b"]
    assert {turn.error for turn in turns} == {"none"}
    assert max(turn.itl_ms for turn in turns) < 40
