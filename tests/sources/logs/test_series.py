"""Lines to samples: counts in a window, and the times of lines."""

from __future__ import annotations

import pytest

from stabilitykit.sources.logs import Line, Series
from stabilitykit.sources.logs.stamps import time_of
from stabilitykit.turn import is_missing


def line_of(matcher, text):
    """Match one line."""
    return Line(1, text.encode(), matcher.match(text.encode()))


def taken(series, matcher, text):
    """Take one line that gives a sample."""
    sample = series.take(line_of(matcher, text))
    assert sample is not None
    return sample


@pytest.mark.capability("issue 4 §3: lines of a behaviour are counted in a window and become signals that rules read")
def test_counts_in_a_window(matcher):
    """Counts grow with each line and fall when the lines grow old; times strictly increase."""
    series = Series("r1", window_s=60)
    text = "[2026-03-07 21:{} TP1] Decode out of memory happened. #retracted_reqs: 1, #new_token_ratio: 0.1 -> 0.2"
    samples = [taken(series, matcher, text.format(at)) for at in ("49:33", "49:33", "49:45", "50:40")]
    assert [s.signals["log_preemption_count"] for s in samples] == [1, 2, 3, 2]
    times = [s.timestamp_s for s in samples]
    assert times == sorted(set(times))


def test_lines_without_a_time(matcher):
    """Without stamps everything is counted, and the sample has no time."""
    series = Series()
    found = [taken(series, matcher, "update: applying K-shift") for _ in range(3)]
    assert [s.signals["log_context_shift_count"] for s in found] == [1, 2, 3]
    assert is_missing(found[0].timestamp_s)
    assert series.take(line_of(matcher, "nothing")) is None


def test_low_confidence_is_not_counted(matcher):
    """A find below the bound is shown, not counted."""
    line = line_of(matcher, "request 7 timed out")
    assert line.confidence == 0.6
    assert Series(min_confidence=0.7).take(line) is None
    assert taken(Series(), matcher, "request 7 timed out").signals["log_request_timeout_count"] == 1


@pytest.mark.parametrize(
    ("before", "after", "seconds"),
    [
        ("[2025-03-07 21:49:33 TP13] x", "[2025-03-07 21:49:45 TP9] x", 12),
        ("INFO 12-31 23:59:58 [l.py:1] x", "INFO 12-31 23:59:59 x", 1),
        ("time=2025-04-22T11:21:47.546Z level=WARN", "time=2025-04-22T11:21:48.046Z level=WARN", 0.5),
        ("[GIN] 2025/04/22 - 11:21:46 | 200", "[GIN] 2025/04/22 - 11:22:46 | 200", 60),
        ("[16:43:29 TP0] x", "[16:43:30 TP0] x", 1), ("0.05.661.887 D slot", "0.06.661.887 D slot", 1),
        ("[08/07/2025-02:28:51] [TRT-LLM]", "[08/07/2025-02:28:52] [TRT-LLM]", 1),
        ('INFO [x] y | timestamp=1751529199', 'INFO [x] y | timestamp=1751529200', 1),
    ],
)  # fmt: skip
def test_stamps(before, after, seconds):
    """The stamps of each server give seconds."""
    first, second = time_of(before.encode()), time_of(after.encode())
    assert first is not None
    assert second is not None
    assert second - first == pytest.approx(seconds)


def test_no_stamp():
    """No time, and no date that there is not."""
    assert time_of(b"Try to allocate 148 tokens.") is None
    assert time_of(b"INFO 99-99 10:00:00 x") is None
