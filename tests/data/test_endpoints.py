"""Hosted endpoints replayed as conversations: false alarms in calm halves."""

from __future__ import annotations

import pytest

from benchmarks.subjects import endpoints


@pytest.mark.slow
@pytest.mark.capability("issue 6: endpoints: at most 2 false alarms in 1,000 turns on calm halves, errors are turns")
def test_targets_and_lines(shared_data):
    """`chat` is calm on calm halves, and deaf to no endpoint that is slowed down; the source is not calm."""
    report = endpoints.run(shared_data)
    assert all(target.is_met for target in report.targets)
    found = {line.method: line for line in report.lines}
    assert {line.kind for line in report.lines} == {"trivial", "source", "reference", "ours", "check"}
    assert found["chat, its latency rules"].figures["missed at x3"] == 0.0
    assert found["static, mean of 20, three in a row"].figures["calm / 1000"] > 2.0
    assert found["never"].figures["missed at x3"] == 1.0
