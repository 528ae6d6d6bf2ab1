from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors import DETECTORS
from stabilitykit.detectors.stream import Stream
from stabilitykit.detectors.trace import Instance, trace
from stabilitykit.errors import UsageError

events = st.lists(
    st.tuples(st.integers(0, 200), st.one_of(st.just(np.nan), st.just(np.inf), st.floats(0, 100))), max_size=60
)


@pytest.mark.capability("issue 3 §4: blocks of interleaved sessions through one call: each session as if alone")
@pytest.mark.parametrize("name", ["decay_pattern", "itl_breaker", "excursion", "transition_spike", "baseline"])
@given(events, st.integers(0, 60))
def test_each_session_is_as_if_alone(name, given_events, cut):
    """Fed in two blocks, compiled, every event has the outputs of its own session's uncompiled detector."""
    settings = {"warmup": 2} if name in ("itl_breaker", "excursion", "baseline") else {}
    stream = Stream(DETECTORS[name], settings)
    alone: dict[int, Instance] = {}
    for block in (given_events[:cut], given_events[cut:]):
        told = stream.feed([s for s, _ in block], [v for _, v in block])
        for k, (session, value) in enumerate(block):
            one = alone.setdefault(session, Instance(DETECTORS[name], settings))
            want = one.update({"input": value if np.isfinite(value) else None})
            np.testing.assert_array_equal([told[o][k] for o in want], list(want.values()))


def test_without_a_compiler_it_is_the_same(monkeypatch):
    """The plain kernels give what the compiled ones give."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    values = [60.0, 61, 50, 44, 39, 35, 31, 28, 25, 22, 20]
    told = Stream(DETECTORS["decay_pattern"]).feed([0] * len(values), values)["state"]
    np.testing.assert_array_equal(told, [t["state"] for t in trace(DETECTORS["decay_pattern"], values)])


def test_what_is_refused_changes_nothing():
    """Other shapes, negative numbers, a detector of several inputs or of an array."""
    stream = Stream(DETECTORS["decay_pattern"])
    refused: list[tuple[Any, Any]] = [([0], [1.0, 2.0]), ([-1], [1.0]), ([[0]], [[1.0]])]
    for sessions, values in refused:
        with pytest.raises(UsageError):
            stream.feed(sessions, values)
    assert stream.feed([], [])["state"].shape == (0,)
    for name in ("latency_attribution", "degeneration"):
        with pytest.raises(UsageError):
            Stream(DETECTORS[name])


def test_the_given_values_are_left_alone():
    """An array of the caller's is read only."""
    values = np.array([1.0, np.inf])
    values.flags.writeable = False
    Stream(DETECTORS["baseline"]).feed(np.array([0, 1]), values)
    assert np.isinf(values[1])


@pytest.mark.capability(
    "issue 3 §4: decay automaton, public streaming call against `re` on labels", figure="decay_stream"
)
@pytest.mark.capability("issue 3 §4: decay automaton in batch against one in plain Python", figure="decay_batch")
def test_the_bench_compares_like_with_like():
    """The three automata of the bench, and the detector, say the same of the same events."""
    from benchmarks import decay

    values = decay.rates()[:4000]
    pairs = [(f"s{k % decay.SESSIONS}", v) for k, v in enumerate(values.tolist())]
    told = Stream(DETECTORS["decay_pattern"]).feed(np.arange(4000) % decay.SESSIONS, values)["state"]
    known = ~np.isnan(told)
    assert known.any()
    assert set(told[known]) == {0.0, 1.0, 2.0}
    for kind in (decay.Python, decay.Labels):
        np.testing.assert_array_equal(np.array(decay.walk(kind, pairs))[known], told[known])
