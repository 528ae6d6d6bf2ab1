"""The latency breaker on real inter-token latencies, resampled."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.subjects import breaker


@pytest.fixture(scope="module")
def report(shared_data):
    """Give what the subject measures."""
    return breaker.run(shared_data)


@pytest.mark.slow
@pytest.mark.capability("issue 6: breaker: at 1 false trip in 1,000 turns, p95 delay at x2 and misses at x1.5")
def test_targets(report):
    """As shipped, and left out, the breaker reaches every target."""
    assert [t.what for t in report.targets if not t.is_met] == []
    assert len(report.targets) == 5


@pytest.mark.slow
@pytest.mark.capability("issue 6: breaker: trivial lines, the source, p90, the whole curve, nobody slowed down")
def test_lines(report):
    """Every kind is there; more evidence, fewer false trips, longer delays; without a slowdown trips are by chance."""
    assert {line.kind for line in report.lines} == {"trivial", "source", "reference", "ours", "check"}
    curve = [line.figures for line in report.lines if "evidence" in line.method]
    assert len(curve) == len(breaker.EVIDENCE)
    assert curve[0]["false / 1000"] > curve[-1]["false / 1000"]
    assert curve[0]["x2 p95"] < curve[-1]["x2 p95"]
    check = next(line for line in report.lines if line.kind == "check")
    assert check.figures["x1 missed"] > 0.9
    rules = [line.figures for line in report.lines if line.method.startswith("rule ")]
    assert [figures["x5 missed"] < 0.05 and figures["false / 1000"] < breaker.FALSE for figures in rules] == [
        True,
        True,
    ]


def test_a_trip_is_the_third_in_a_row():
    """Once for each row; a row that goes on trips no more."""
    over = np.array([1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1], bool)
    assert breaker.trips(over).tolist() == [5, 10]


def test_a_rule_is_run_as_it_is_shipped():
    """Three slow turns in a row match where the third is, and every run is a conversation of its own."""
    matches = breaker.shipped_rule("itl-over-baseline")
    for _ in range(2):
        told = matches(np.array([40.0] * 25 + [200.0, 200.0, 40.0] + [200.0] * 4))
        assert breaker.starts(told).tolist() == [30]


def test_left_out_does_not_look_at_the_endpoint_it_is_scored_on():
    """An endpoint with many false trips takes what the others allow; the others take what it forces on them."""
    curve = [
        breaker.Found(np.array([[0.0], [0.0], [9.0]]), {2.0: np.zeros((3, 1))}),
        breaker.Found(np.array([[0.0], [0.0], [0.0]]), {2.0: np.ones((3, 1))}),
    ]
    found = breaker.left_out(curve)
    assert found.delays[2.0].ravel().tolist() == [1.0, 1.0, 0.0]
    assert found.false.ravel().tolist() == [0.0, 0.0, 9.0]
