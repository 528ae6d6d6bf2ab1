"""A real vLLM server at eight load levels, requests and engine samples joined on time."""

from __future__ import annotations

import pytest

from benchmarks.subjects.replay_real import SCALES, Row, burst, burst_entries
from stabilitykit.sample import Sample


@pytest.fixture(scope="module")
def levels(shared_data) -> dict[int, Row]:
    """Give what `chat` says at every load level."""
    return {int(scale): row for scale, row in burst(shared_data).items()}


@pytest.mark.capability("issue 2 §7: eight load levels of a real vLLM server, saturation told from bursts")
def test_a_server_that_keeps_up_is_never_called_saturated(levels):
    """Load 100: no sample; load 200: at most one short episode, of ten samples (5 s)."""
    assert levels[100]["episodes"] == 0
    assert levels[200]["episodes"] <= 1
    assert levels[200]["saturated_samples"] <= 10


@pytest.mark.capability("issue 2 §7: eight load levels of a real vLLM server, saturation told from bursts")
def test_a_server_that_does_not_keep_up_is_called_once_and_for_long(levels):
    """From load 400 on there is one episode, told once, of at least a seventh of the run."""
    for scale in SCALES[2:]:
        assert levels[scale]["episodes"] == 1, scale
        assert levels[scale]["refuse_new"] == 1, scale
        assert levels[scale]["saturated_samples"] > levels[scale]["samples"] / 7, scale
    assert levels[1500]["saturated_samples"] > levels[400]["saturated_samples"]


@pytest.mark.capability("issue 2 §7: eight load levels of a real vLLM server, saturation told from bursts")
def test_kv_usage_would_have_said_nothing(levels):
    """The cache is never half full, at no load: usage alone is no measure of pressure."""
    assert 0.4 < max(row["greatest_kv_usage"] for row in levels.values()) < 0.5


def test_the_replica_is_marked_and_its_conversations_are_not(levels):
    """Requests served meanwhile see the replica's state; no conversation is broken by its neighbours."""
    for scale in SCALES[2:]:
        assert levels[scale]["requests_on_saturated"] > 0, scale
    assert all(row["troubled_conversations"] == 0 for row in levels.values())


def test_samples_and_requests_are_joined_on_time(shared_data):
    """Every row of both files is there, in the order of time, and percent became a ratio."""
    entries = list(burst_entries(shared_data, 400))
    times = [entry.timestamp_s for entry in entries]
    assert times == sorted(times)
    samples = [entry for entry in entries if isinstance(entry, Sample)]
    assert (len(samples), len(entries) - len(samples)) == (306, 500)
    assert all(0 <= float(sample.signals["kv_usage_ratio"]) <= 1 for sample in samples)
