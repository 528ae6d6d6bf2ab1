from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.drift_probe import DRIFT_PROBE, FEATURES
from stabilitykit.detectors.trace import Instance, trace
from stabilitykit.signals import Weights
from tests.detectors.agreement import check_compiled, check_twins
from tests.naive.drift_probe import DriftProbeTwin


def model(seed, dim=3, is_linear=True, **changed):
    """Give random weights."""
    rng = np.random.default_rng(seed)
    arrays = {
        "centre": rng.normal(size=dim) * 0.1,
        "features": rng.normal(size=10),
        "means": rng.uniform(0, 3, size=10),
        "bias": rng.normal(size=1),
        "threshold": np.array([0.4]),
    }
    if is_linear:
        arrays |= {name: rng.normal(size=dim) for name in ("now", "before", "product")}
    return Weights("m", {**arrays, **changed})


def one_feature(name, dim=2):
    """Give a model whose logit is one feature."""
    features = np.array([float(n == name) for n in FEATURES])
    zero, half = np.zeros(1), np.full(1, 0.5)
    arrays = {"features": features, "means": np.full(10, -1.0), "bias": zero, "threshold": half}
    return Weights("", {"centre": np.zeros(dim), **arrays})


def feature(name, rows, dim=2):
    """Give a feature turn by turn."""
    out = trace(DRIFT_PROBE, rows, {"model": one_feature(name, dim), "dim": dim})
    return [math.log(t["probability"] / (1 - t["probability"])) for t in out]


vectors = st.one_of(
    st.none(),
    st.lists(st.floats(-9, 9, width=32).filter(lambda a: a == 0 or abs(a) > 1e-2), min_size=3, max_size=3),
    st.sampled_from([[0.0] * 3, [math.nan, 1.0, 1.0], [math.inf, 1.0, 1.0], [1.0, 2.0], [3e38, -3e38, 3e38]]),
)
counts = st.one_of(st.none(), st.integers(0, 3000).map(float))
marks = st.one_of(st.none(), st.integers(0, 3).map(float))
rows = st.lists(
    st.fixed_dictionaries({"input": vectors, "prompt": counts, "answer": counts, "questions": marks}), max_size=15
)
use = st.builds(lambda s, f: {"dim": 3, "model": model(s, is_linear=f)}, st.integers(0, 99), st.booleans())


@pytest.mark.capability("issue 3 §1: `drift_probe`, a logistic model in the pass, is its naive twin")
@given(rows, use)
def test_is_naive_twin(turns, settings):
    """Any vectors and numbers of tokens, unknown, shrinking and non-finite ones among them: kernel and twin agree."""
    check_twins(DRIFT_PROBE, DriftProbeTwin, turns, settings, tolerance=1e-5)  # kept in float32


@given(rows, use)
def test_compiled_is_plain(turns, settings):
    """Machine code may add in another order, and no more."""
    check_compiled(DRIFT_PROBE, turns, settings, tolerance=1e-6)


@given(st.integers(1, 40), st.integers(0, 2**32))
def test_distances_are_numpys(dim, seed):
    """The centred distances are those of numpy, for every dimension."""
    rng = np.random.default_rng(seed)
    a, b, d = rng.normal(size=(3, dim)).astype(np.float32).astype(float)
    centre = rng.normal(size=dim) * 0.1
    z = [u / np.linalg.norm(u) - centre for u in (a, b, d)]
    unit = [u / np.linalg.norm(u) for u in z]
    arrays = {**one_feature("previous", dim).arrays, "centre": centre}
    out = trace(DRIFT_PROBE, [a, b, d], {"model": Weights("", arrays), "dim": dim})
    far = [1 - unit[2] @ unit[1], 1 - unit[2] @ unit[0]]
    assert out[2]["distance"] == pytest.approx(min(far), abs=1e-6)
    assert math.log(out[2]["probability"] / (1 - out[2]["probability"])) == pytest.approx(far[0], abs=1e-5)


def test_tokens_of_a_message_are_the_growth_of_the_prompt():
    """100 tokens more, 60 of them the answer before: the message has 40; the first turn's is unknown (its mean)."""
    rows = [
        {"input": [1, 0], "prompt": 50, "answer": 60},
        {"input": [1, 1], "prompt": 150, "answer": 10},
        {"input": [0, 1], "prompt": 180, "answer": 5},
    ]
    assert feature("message", rows)[1:] == pytest.approx([math.log(41), math.log(21)])
    assert feature("message_before", rows)[1:] == pytest.approx([-1.0, math.log(41)])
    assert feature("answer", rows)[1:] == pytest.approx([math.log(61), math.log(11)])


def test_question_marks_are_told_or_their_mean():
    """A message asks or does not, however often; one of an unknown number counts as the mean, -1."""
    rows = [{"input": v, "questions": q} for v, q in [([1, 0], 2), ([1, 1], 0), ([0, 1], None), ([1, 0], 1)]]
    assert feature("asks", rows)[1:] == pytest.approx([0.0, -1.0, 1.0])
    assert feature("asked_before", rows)[1:] == pytest.approx([1.0, 0.0, -1.0])


def test_a_cut_history_is_no_length():
    """A prompt that shrank says nothing of the message."""
    rows = [{"input": [1, 0], "prompt": 500, "answer": 60}, {"input": [1, 1], "prompt": 90, "answer": 10}]
    assert feature("message", rows)[1] == pytest.approx(-1.0)


def test_coming_back_is_near():
    """The nearer of two turns, and the mean of the topic, know a topic that was left for one turn."""
    rows = [[1, 0], [0, 1], [1, 0]]
    assert feature("nearest", rows)[2] == pytest.approx(0.0, abs=1e-6)
    assert feature("previous", rows)[2] == pytest.approx(1.0)
    assert feature("topic", rows)[2] == pytest.approx(1 - 0.3 / math.hypot(0.3, 0.7), abs=1e-6)


@pytest.mark.parametrize("bad", [[0.0, 0.0], [math.nan, 1.0], [math.inf, 0.0], [1.0], None])
def test_unusable_vector_changes_nothing(bad):
    """A zero, non-finite or wrongly sized vector is unknown, and the next distance goes over it."""
    settings = {"model": one_feature("nearest"), "dim": 2}
    rows = [[1, 0], [1, 0.2], [0, 1]]
    plain, holed = trace(DRIFT_PROBE, rows, settings), trace(DRIFT_PROBE, [*rows[:2], bad, rows[2]], settings)
    assert math.isnan(holed[2]["is_drift"])
    assert str(holed[:2] + holed[3:]) == str(plain)


@pytest.mark.parametrize(
    ("arrays", "wrong"),
    [
        ({"centre": np.zeros(4)}, "needs `centre` of 3"),
        ({"features": np.zeros(7)}, "needs `features` of 10"),
        ({"product": np.zeros(2)}, "needs `product` of 3"),
        ({"bias": np.array(["a"])}, "needs `bias` of 1"),
        ({"threshold": np.array([1.0])}, "no probability"),
    ],
)
def test_a_model_of_another_kind_is_refused(arrays, wrong):
    """The settings say what the model lacks."""
    assert wrong in DRIFT_PROBE.check({"model": model(1, **arrays), "dim": 3})
    assert DRIFT_PROBE.check({"model": model(1), "dim": 3}) == ""
    assert "needs `model`" in DRIFT_PROBE.check({"model": None, "dim": 3})


@pytest.mark.capability("issue 3 §1: a probe of 384 dimensions keeps at most 5 KB a session")
def test_memory_of_a_session():
    """Two vectors and the mean of the topic, in float32, and nine numbers."""
    instance = Instance(DRIFT_PROBE, {"model": model(0, 384)} | {"dim": 384})
    assert sum(block.nbytes for block in instance.memory) <= 5000
