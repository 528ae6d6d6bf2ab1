from __future__ import annotations

import json
import random
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.errors import UsageError
from stabilitykit.sources.latency_heat import BIN_NS, HOP_NS, LatencyHeat

RECORDING = "stabilitykit/data/recordings/llamacpp_smollm2.jsonl"
MS = 1_000_000
REQUESTS = st.lists(
    st.tuples(st.integers(0, 2_000 * MS), st.integers(0, 300 * MS), st.lists(st.integers(1, 90 * MS), max_size=12)),
    min_size=1,
    max_size=6,
)
"""When it was sent, the first token after that, the gaps."""


def events(requests):
    """Give the events of requests in the order of time: request, event, stamp."""
    told = []
    for name, (sent, first, gaps) in enumerate(requests):
        stamps = np.cumsum([sent + first, *gaps]).tolist()
        told += [(name, "sent", sent), (name, "first", stamps[0])]
        told += [(name, "token", at) for at in stamps[1:]] + [(name, "end", stamps[-1])]
    return sorted(told, key=lambda e: (e[2], ("sent", "first", "token", "end").index(e[1])))


def fill(told, **settings):
    """Give a heat that took events."""
    heat = LatencyHeat(**settings)
    for event in told:
        heat.add(*event)
    return heat


def oracle(requests, start_ns, bins):
    """Count by numpy.histogram2d, once for each half of the overlapping windows."""
    times, gaps = [], []
    for sent, first, steps in requests:
        times += np.cumsum([sent + first, *steps])[1:].tolist()
        gaps += steps
    columns = np.append(np.arange(bins) * BIN_NS, np.inf)
    found = np.zeros((len(start_ns), bins), np.int64)
    for offset in (0, 1):
        starts = start_ns[offset::2]
        rows = np.append(starts, starts[-1] + 2 * HOP_NS) if len(starts) else np.array([0, 1])
        counted, _, _ = np.histogram2d(times, gaps, bins=(rows, columns))
        found[offset::2] = counted[: len(starts)]
    return found


@pytest.mark.capability(
    "issue 3 §1: heat of RT / TTFT / ITL: 100 ms windows that slide by 50 ms, 5 ms bins, is numpy.histogram2d"
)
@given(REQUESTS, st.integers(1, 30))
def test_the_map_is_histogram2d(requests, bins):
    """Any requests at once: every window and bin as NumPy counts it, the last bin open."""
    told = fill(events(requests), bins=bins).map()
    assert (np.diff(told.start_ns) == HOP_NS).all()
    # histogram2d closes its last edge; whole ns below it keep the same bins.
    np.testing.assert_array_equal(told.gaps, oracle(requests, told.start_ns, bins))
    assert told.gaps.sum() == 2 * sum(len(gaps) for _, _, gaps in requests)


@pytest.mark.capability("issue 3 §1: heat map: late, repeated and shuffled stamps of any request end in the same map")
@given(REQUESTS, st.randoms(use_true_random=False))
def test_order_and_doubles_are_nothing(requests, rng):
    """Shuffled before its end and with every token twice: the map of the orderly stream."""
    told = events(requests)
    tokens = [e for e in told if e[1] != "end"]
    messy = [*tokens, *[e for e in tokens if e[1] == "token"]]
    rng.shuffle(messy)
    heat = fill([*messy, *[e for e in told if e[1] == "end"]], reorder=32)
    tidy = fill(told)
    np.testing.assert_array_equal(heat.map().gaps, tidy.map().gaps)
    np.testing.assert_array_equal(heat.map().ttft_ms, tidy.map().ttft_ms)
    np.testing.assert_array_equal(heat.map().rt_ms, tidy.map().rt_ms)
    assert heat.duplicates == sum(len(gaps) for _, _, gaps in requests)
    assert heat.late == 0


@given(REQUESTS)
def test_first_tokens_and_answers_have_their_windows(requests):
    """Mean TTFT at the first token's time and mean RT at the end's, by window."""
    told = fill(events(requests)).map()
    for row, start in enumerate(told.start_ns):
        first, whole = [], []
        for sent, wait, gaps in requests:
            end = sent + wait + sum(gaps)
            if start <= sent + wait < start + 2 * HOP_NS:
                first.append(wait / MS)
            if start <= end < start + 2 * HOP_NS:
                whole.append((end - sent) / MS)
        assert told.ttft_ms[row] == pytest.approx(np.mean(first) if first else np.nan, nan_ok=True)
        assert told.rt_ms[row] == pytest.approx(np.mean(whole) if whole else np.nan, nan_ok=True)


@pytest.mark.capability("issue 3 §1: heat map: a negative duration is unknown, an event after the end is late")
def test_negative_durations_and_latecomers_are_counted():
    """An end before it was sent gives no response time; what comes for an ended request changes nothing."""
    heat = fill([(1, "sent", 500 * MS), (1, "first", 400 * MS), (1, "end", 450 * MS), (1, "token", 460 * MS)])
    assert (heat.unknown, heat.late) == (2, 1)
    assert heat.map().gaps.sum() == 0
    with pytest.raises(UsageError, match="event must be one of sent, first, token, end"):
        heat.add(1, "begin", 0)


def test_a_stamp_behind_its_place_is_late():
    """More stamps than wait for their order: one that comes still later is counted as late, the rest holds."""
    told = [(1, "token", k * 10 * MS) for k in range(20)]
    heat = fill([*told, (1, "token", 5 * MS), (1, "end", 200 * MS)], reorder=4)
    assert heat.late == 1
    assert heat.map().gaps.sum() == 2 * 19


@pytest.mark.parametrize("wrong", [{"bins": 0}, {"hops": 0}, {"open_requests": 0}, {"reorder": 0}])
def test_sizes_below_one_are_refused(wrong):
    """A map without room is a mistake of the caller."""
    with pytest.raises(UsageError, match="at least 1"):
        LatencyHeat(**wrong)


def test_an_empty_map_is_empty():
    """No event, no window."""
    told = LatencyHeat(bins=3).map()
    assert told.gaps.shape == (0, 3)
    assert len(told.start_ns) == len(told.ttft_ms) == len(told.rt_ms) == 0


@pytest.mark.capability("issue 3 §1: heat map: memory is bounded, whatever streams in")
def test_memory_is_bounded():
    """Requests that never end, stamps that jump by hours, an old stamp: no more memory after the first thousands."""
    heat = LatencyHeat(bins=8, hops=64, open_requests=100, reorder=4)
    rng = random.Random(5)

    def feed(start, count):
        for k in range(start, start + count):
            heat.add(k, "sent", k * MS)
            for step in range(5):
                heat.add(k, "token", (k + 10 * step) * MS + rng.randrange(3_600_000) * MS * (k % 1000 == 0))

    feed(0, 3000)
    tracemalloc.start()
    feed(3000, 3000)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 200_000
    assert heat.dropped >= 5900
    assert len(heat.map().start_ns) <= 65


@pytest.mark.capability("issue 3 §1: heat map of a recorded server: competing streams move its gaps to later bins")
def test_a_recorded_server_is_hot_where_it_was_slowed(root):
    """Each gap that the client measured, joined from stamps: with other streams on the server it lies in later bins."""
    heat, start = LatencyHeat(bins=60, hops=20_000), None
    slowed: list[tuple[int, bool]] = []
    for line in (root / RECORDING).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row.get("scenario") != "slowed" or "itl_ms_per_token" not in row:
            continue
        end = round(row["timestamp_s"] * 1e9)
        start = end - 10**9 if start is None else start
        name, sent = row["turn_id"], end - round(row["rt_ms"] * MS) - start
        stamps = np.cumsum([sent + round(row["ttft_ms"] * MS), *(round(g * MS) for g in row["itl_ms_per_token"])])
        events: list[tuple[Any, Any, int]] = [
            (name, "sent", sent),
            (name, "first", int(stamps[0])),
            *((name, "token", int(t)) for t in stamps[1:]),
        ]
        for event in events:
            heat.add(*event)
        heat.add(name, "end", int(stamps[-1]))
        slowed.append((int(stamps[-1]), row["competing_streams"] > 0))
    told = heat.map()
    middle: dict[bool, list[float]] = {False: [], True: []}
    for end_ns, is_slow in slowed:
        row = told.gaps[(end_ns // HOP_NS * HOP_NS - told.start_ns[0]) // HOP_NS]
        if row.sum():
            middle[is_slow].append((row * np.arange(60)).sum() / row.sum())
    assert min(len(v) for v in middle.values()) >= 4
    assert np.median(middle[True]) > 1.5 * np.median(middle[False])
