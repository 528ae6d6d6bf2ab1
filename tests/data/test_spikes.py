"""Excursions on the series of the Numenta Anomaly Benchmark, by its own score."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.subjects import spikes


@pytest.fixture(scope="module")
def report(shared_data):
    """Give what the subject measures."""
    return spikes.run(shared_data)


@pytest.mark.slow
@pytest.mark.capability("issue 6: spikes: 3 points standard and 6 low FP over the better reference, in 1 KB a series")
def test_targets(report):
    """Margins taken from the other series, both gains are reached."""
    assert [t.what for t in report.targets if not t.is_met] == []
    assert len(report.targets) == 2


@pytest.mark.slow
@pytest.mark.capability("issue 6: spikes: trivial lines, the source, windowedGaussian, two-sided p99.9, turned in time")
def test_lines(report):
    """Silence is 0 by definition; the same calls at other places earn next to nothing."""
    assert {line.kind for line in report.lines} == {"trivial", "source", "reference", "ours", "check"}
    found = {line.method: line.figures for line in report.lines}
    assert [found["silence"][p] for p in spikes.PROFILES] == pytest.approx([0, 0, 0])
    assert found["excursion, turned in time"]["standard"] < found["excursion, left out"]["standard"] / 3


@pytest.fixture
def toy():
    """Give a series of 200 values with one window, from 100 to 119."""
    window = np.full(200, -1)
    window[100:120] = 0
    worth = np.full(200, -1.0)
    worth[100:120] = spikes.sigmoid(-np.arange(20, 0, -1) / 20) / float(spikes.sigmoid(-1.0))
    worth[120:] = spikes.sigmoid(np.arange(1, 81) / 19)
    return spikes.Series("toy", np.zeros(200), worth, window, 30)


def calls(*places):
    """Give calls at these places of 200."""
    told = np.zeros(200, bool)
    told[list(places)] = True
    return told


def test_score_is_the_benchmarks(toy):
    """100 for a window's first value, 0 for silence; early is better, calls outside cost, probation is free."""

    def score(*places):
        return spikes.normalised(spikes.score([toy], [calls(*places)]).sum(axis=0))

    assert score(100).tolist() == pytest.approx([100, 100, 100])
    assert score().tolist() == pytest.approx([0, 0, 0])
    assert score(100)[0] > score(110)[0] > score(119)[0] > 50
    assert score(100, 110)[0] == score(100)[0]
    assert score(100, 50)[0] == pytest.approx(100 - 100 * 0.11 / 2)
    assert score(100, 50)[1] == pytest.approx(100 - 100 * 0.22 / 2)
    assert score(100, 10)[0] == score(100)[0]


def test_windowed_gaussian_is_the_tail_of_its_window():
    """Of a constant past any other value is certain; else it is the normal tail; the window moves by steps."""
    told = spikes.windowed_gaussian(np.array([1.0, 1.0, 1.0, 2.0]))
    assert told.tolist() == [0.0, 0.5, 0.5, 1.0]
    values = np.concatenate([np.tile([-1.0, 1.0], 50), [1.96]])
    assert spikes.windowed_gaussian(values)[-1] == pytest.approx(0.975, abs=1e-4)
    values = np.concatenate([np.tile([-1.0, 1.0], 50), np.tile([9.0, 11.0], 50), [10.0]])
    assert spikes.windowed_gaussian(values, size=100, step=100)[-1] == pytest.approx(0.5)


def test_cooldown_gives_one_call_an_excursion():
    """The next call is more than a hundred values later."""
    assert np.flatnonzero(spikes.cooled(calls(5, 6, 50, 105, 106, 190))).tolist() == [5, 106]
