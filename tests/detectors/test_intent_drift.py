from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.intent_drift import INTENT_DRIFT
from stabilitykit.detectors.trace import trace
from tests.detectors.compare import check_agreement
from tests.naive.intent_drift import IntentDriftTwin

METHODS = ("prior", "source_corrected", "source_as_written", "fixed")
components = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 2.0]),
    st.floats(-10, 10, width=32, allow_subnormal=False).filter(lambda a: a == 0 or abs(a) > 1e-3),
)
vectors = st.one_of(
    st.none(),
    st.lists(components, min_size=3, max_size=3),
    st.sampled_from([[0.0] * 3, [math.nan, 1.0, 1.0], [math.inf, 1.0, 1.0], [1.0, 2.0], [3e38] * 3, [1e-30, 0.0, 0.0]]),
)
use = st.fixed_dictionaries(
    {
        "dim": st.just(3),
        "method": st.sampled_from(METHODS),
        "score": st.sampled_from(["previous", "max2", "topic", "depth"]),
        "k": st.sampled_from([0.0, 0.75, 2.0]),
        "window": st.sampled_from([2, 5]),
        "floor": st.sampled_from([0.0, 0.05]),
    }
)


def directions(angles):
    """Unit vectors of a plane."""
    return [[math.cos(a), math.sin(a)] for a in angles]


def fired(rows, **settings):
    """Give the turns on which plane vectors drift."""
    turns = trace(INTENT_DRIFT, rows, {"dim": 2, **settings})
    return [n for n, t in enumerate(turns, start=1) if t["is_drift"] == 1]


@pytest.mark.capability("issue 2 §4: `intent_drift` is its naive twin, every method")
@given(st.lists(vectors, max_size=25), use)
def test_is_naive_twin(rows, settings):
    """The kernel is its naive twin, whose sums are exact: zero, huge, short and non-finite vectors among them."""
    check_agreement(INTENT_DRIFT, IntentDriftTwin, rows, settings, tolerance=1e-9)


@given(st.integers(1, 40), st.integers(0, 2**32))
def test_distance_is_cosine_distance(dim, seed):
    """The distance is numpy's, for every dimension."""
    u, v = np.random.default_rng(seed).standard_normal((2, dim)).astype(np.float32).astype(float)
    out = trace(INTENT_DRIFT, [u, v], {"dim": dim})[1]
    want = 1 - u @ v / (np.linalg.norm(u) * np.linalg.norm(v))
    assert out["distance"] == pytest.approx(want, abs=1e-12)


def test_max2_is_the_nearer_of_two():
    """Coming back to the topic before last is no distance."""
    rows = directions([0.0, 1.5, 0.0, 3.0])
    assert [t["distance"] for t in trace(INTENT_DRIFT, rows, {"dim": 2, "score": "max2"})[1:]] == pytest.approx(
        [1 - math.cos(1.5), 0.0, 1 - math.cos(1.5)], abs=1e-7
    )
    assert trace(INTENT_DRIFT, rows, {"dim": 2})[2]["distance"] == pytest.approx(1 - math.cos(1.5), abs=1e-7)


@pytest.mark.capability("issue 3 §1: `intent_drift`: distance to a weighted mean of the topic, and depth of a rise")
def test_topic_and_depth():
    """The mean knows both of two topics; depth is 0 while the distance falls, then the rise from the valley."""
    rows = directions([0.0, 1.0, 1.0, 0.0])
    topic = [t["distance"] for t in trace(INTENT_DRIFT, rows, {"dim": 2, "score": "topic"})]
    between = np.array([0.25 * np.cos(0) + 0.75 * np.cos(1), 0.75 * np.sin(1)])
    assert topic[1:3] == pytest.approx([1 - math.cos(1), 1 - math.cos(0.5)], abs=1e-7)
    assert topic[3] == pytest.approx(1 - between[0] / np.linalg.norm(between), abs=1e-7)
    steps = directions(np.cumsum([0.0, 0.6, 0.2, 0.4, 0.9]))
    depth = [t["distance"] for t in trace(INTENT_DRIFT, steps, {"dim": 2, "score": "depth"})][1:]
    d = [1 - math.cos(a) for a in (0.6, 0.2, 0.4, 0.9)]
    assert depth == pytest.approx([0, 0, d[2] - d[1], d[3] - d[1]], abs=1e-7)


@pytest.mark.capability("issue 3 §1: `intent_drift`: max_similarity, a fixed bound on the nearer of two turns")
def test_fixed_bound_does_not_learn():
    """Whatever was seen, the bound is mu0 + k s0."""
    settings = {"dim": 2, "method": "fixed", "score": "max2", "mu0": 0.4, "s0": 0.1, "k": 1.0}
    turns = trace(INTENT_DRIFT, directions([0.0, 0.3, 2.0, 0.1, 3.1]), settings)
    assert {t["threshold"] for t in turns} == {0.5}
    assert [t["is_drift"] for t in turns][1:] == [0, 1, 0, 1]


@pytest.mark.parametrize("bad", [[0.0, 0.0], [math.nan, 1.0], [math.inf, 0.0], [1.0], [1.0, 0.0, 0.0], None])
@pytest.mark.parametrize("method", METHODS)
def test_unusable_vector_changes_nothing(bad, method):
    """A zero, non-finite or wrongly sized vector is unknown, and the next distance goes over it."""
    rows = directions([0.0, 0.2, 0.1, 0.3, 2.0])
    settings = {"dim": 2, "method": method}
    plain = trace(INTENT_DRIFT, rows, settings)
    holed = trace(INTENT_DRIFT, [*rows[:3], bad, *rows[3:]], settings)
    assert math.isnan(holed[3]["is_drift"])
    assert math.isnan(holed[3]["distance"])
    assert str(holed[:3] + holed[4:]) == str(plain)


@pytest.mark.capability(
    "issue 2 §4: `intent_drift`: a change of topic is seen on the turn it happens, from the second turn on"
)
def test_prior_fires_from_the_first_distance():
    """With the prior there is a verdict on turn 2; the first turn has nothing to be compared with."""
    assert fired(directions([0.0, 2.0])) == [2]
    assert math.isnan(trace(INTENT_DRIFT, directions([0.0]), {"dim": 2})[0]["is_drift"])


@pytest.mark.capability("issue 2 §4: `intent_drift`: source_corrected fires where source_as_written cannot")
def test_corrected_fires_where_the_source_cannot():
    """One large distance after small ones: found by the corrected rule, never by the rule as written."""
    rows = directions([0.0, 0.3, 0.1, 0.4, 0.2, 0.5, 2.1])
    assert fired(rows, method="source_corrected", k=2.0) == [7]
    assert fired(rows, method="source_as_written", k=2.0) == []


def test_one_shift_does_not_mask_the_next():
    """A fired distance is learned as the threshold, so a second shift soon after is found too."""
    rows = directions([0.0, 0.1, 0.0, 0.1, 0.0, 2.0, 2.1, 2.0, 0.0])
    assert fired(rows, method="source_corrected", k=2.0) == [6, 9]


def test_constant_history_needs_the_floor():
    """With equal distances before, the floor of the deviation keeps a tiny change from firing."""
    rows = directions([0.0, 0.3, 0.0, 0.3, 0.0, 0.32])
    assert fired(rows, method="source_corrected", k=2.0) == []
    assert fired(rows, method="source_corrected", k=2.0, floor=0.0) == [6]


def written_source_fires(tie_guard):
    """Count firings of the rule as written when four equal distances precede a greater one."""
    rng = np.random.default_rng(0)
    count = 0
    for _ in range(600):
        a, b, c = rng.uniform(0, 1.0), rng.uniform(1.2, 2.0), rng.uniform(2.4, 3.6)
        rows = directions([a, b, a, b, a, c])
        count += 6 in fired(rows, method="source_as_written", k=2.0, tie_guard=tie_guard)
    return count


@pytest.mark.capability(
    "issue 2 §4: `intent_drift`: source_as_written never fires, exactly or, with the guard, in floats"
)
def test_source_as_written_never_fires_with_the_guard():
    """Its z-score cannot exceed 2, and rounding is not taken for news."""
    assert written_source_fires(True) == 0


def test_source_as_written_fires_at_random_without_the_guard():
    """Where the z-score is exactly 2 rounding decides: some of 600 exact ties fire."""
    assert 0 < written_source_fires(False) < 300


@pytest.mark.capability(
    "issue 2 §4: `intent_drift`: source_as_written never fires, exactly or, with the guard, in floats"
)
@given(st.lists(st.integers(0, 5), min_size=6, max_size=30), st.sampled_from([2, 3, 5]))
def test_source_as_written_never_fires(steps, window):
    """Whatever the distances, k = 2 is out of reach of a window of at most 5 that holds the value."""
    assert fired(directions([0.6 * s for s in steps]), method="source_as_written", k=2.0, window=window) == []


def test_vectors_are_counted_in_the_vector_block():
    """One vector is kept for `previous`, two for `max2`, in float32."""
    base = {"method": "prior", "dim": 384, "n0": 20, "mu0": 0.5, "s0": 0.1}
    assert INTENT_DRIFT.layout({**base, "score": "previous"}).vec == 384
    assert INTENT_DRIFT.layout({**base, "score": "max2"}).vec == 768


@pytest.mark.parametrize(("name", "f1"), [("tiage", 0.40), ("dialseg711", 0.50)])
def test_shipped_defaults_on_real_dialogues(shared_data, name, f1):
    """The default settings keep their measured micro F1 on labelled dialogues (first 60 of each file)."""
    z = np.load(shared_data / "dialogues" / f"embeddings_minilm_{name}.npz")
    start, hits, marked = 0, 0, 0
    for n in z["n_turns"][:60]:
        part = slice(start, start + n)
        found = [t["is_drift"] == 1 for t in trace(INTENT_DRIFT, z["E"][part])][1:]
        label = z["shift"][part][1:] > 0
        hits, marked, start = hits + int((label & found).sum()), marked + int(label.sum()) + sum(found), start + n
    assert 2 * hits / marked > f1
