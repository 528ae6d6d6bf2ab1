"""Overload told without the server's queue, on eight runs of a real vLLM server; and caused on a real one here."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.subjects import overload


@pytest.fixture(scope="module")
def report(shared_data):
    """Give what the subject measures."""
    return overload.run(shared_data)


@pytest.mark.capability("issue 6: overload without the queue: recall, false share and delay on runs left out")
def test_targets(report):
    """The shipped rule reaches every target, its constant being fitted to nothing here."""
    assert [t.what for t in report.targets if not t.is_met] == []
    assert len(report.targets) == 3


@pytest.mark.capability("issue 6: overload: trivial lines, the source, the one-line rule on the queue, permuted truth")
def test_lines(report):
    """Every kind of line is there; the queue itself raises no false alarm; permuted truth is at chance."""
    assert {line.kind for line in report.lines} == {"trivial", "source", "reference", "ours", "check"}
    by_kind = {line.kind: line for line in report.lines}
    assert by_kind["reference"].figures["false share"] == 0.0
    assert by_kind["check"].figures["recall"] == pytest.approx(by_kind["check"].figures["false share"], abs=0.05)
    for line in report.lines:
        for name, (low, high) in line.intervals.items():
            assert line.figures.get(name, low) == pytest.approx(np.clip(line.figures.get(name, low), low, high))


def test_what_counts_as_overload():
    """Five seconds of queue, without a gap in the log; a shorter stretch is none."""
    times = np.array([0.0, 1, 2, 3, 4, 5, 6, 7, 8, 20, 21])
    pending = np.array([0.0, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1])
    marked, stretches = overload.overloaded(times, pending)
    assert marked.tolist() == [False] + [True] * 6 + [False] * 4
    assert stretches == [(1.0, 6.0)]
    assert overload.overloaded(times, np.ones(11))[1] == [(0.0, 8.0)]


def test_a_threshold_is_not_chosen_where_it_is_scored():
    """The run that is left out takes what is best on the others, though it would choose otherwise."""
    runs = [np.array([False, True]), np.array([False, True]), np.array([True, False])]
    made = [
        overload.Run(str(k), np.arange(2.0), np.zeros(2), truth, (), np.zeros(2), np.zeros(2), ())
        for k, truth in enumerate(runs)
    ]
    flags = {1.0: [np.array([False, True])] * 3, 2.0: [np.array([True, False])] * 3}
    chosen = overload.left_out(made, flags)
    assert chosen[2].tolist() == [False, True]
