from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from stabilitykit.detectors.intent_churn import INTENT_CHURN
from stabilitykit.detectors.trace import trace
from stabilitykit.signals import Weights
from tests.detectors.agreement import check_compiled, check_twins
from tests.naive.intent_churn import IntentChurnTwin

RNG = np.random.default_rng(7)
MODEL = Weights("m", {"weights": RNG.normal(size=(4, 3)) * 3, "bias": RNG.normal(size=4)})
distributions = st.lists(st.integers(0, 20), min_size=2, max_size=5).map(
    lambda k: [a / sum(k) for a in k] if sum(k) else [1.0, *k[1:]]
)
probs = st.one_of(
    st.none(),
    distributions,
    st.sampled_from([[], [1.0], [0.5, -0.5, 1.0], [math.nan, 1.0], [math.inf, 0.0], [0.3, 0.3], [0.505, 0.5], [2, -1]]),
)
vectors = st.one_of(
    st.none(),
    st.lists(st.floats(-9, 9, width=32).filter(lambda a: a == 0 or abs(a) > 1e-3), min_size=3, max_size=3),
    st.sampled_from([[0.0] * 3, [math.nan, 1.0, 1.0], [math.inf, 1.0, 1.0], [1.0, 2.0], [1e30, -1e30, 0.0]]),
)
rows = st.lists(st.fixed_dictionaries({"probs": probs, "input": vectors}), max_size=20)
settings = st.fixed_dictionaries(
    {
        "model": st.sampled_from([None, MODEL]),
        "limit": st.sampled_from([0.0, 0.5, 0.912]),
        "turns": st.integers(1, 3),
        "switches": st.integers(1, 2),
        "window": st.integers(2, 5),
        "unknown": st.integers(-1, 1),
    }
)


@pytest.mark.capability("issue 3 §1: `intent_churn` is its naive twin")
@given(rows, settings)
def test_is_naive_twin(turns, use):
    """Given or made probabilities, unknown, wrong and of changing size: kernel and twin agree."""
    check_twins(INTENT_CHURN, IntentChurnTwin, turns, use, tolerance=1e-6)  # host's float32


@given(rows, settings)
def test_compiled_is_plain(turns, use):
    """Machine code may add in another order, and no more."""
    check_compiled(INTENT_CHURN, turns, use, tolerance=1e-12)


@pytest.mark.capability("issue 3 §1: entropy of `intent_probs` in nats and normalised is scipy.stats.entropy")
@given(distributions)
def test_entropy_is_scipys(p):
    """In nats, and over ln C."""
    (out,) = trace(INTENT_CHURN, [np.array(p, np.float32)])
    wanted = stats.entropy(np.array(p, np.float32).astype(float))
    assert out["entropy_nats"] == pytest.approx(wanted, abs=1e-12)
    assert out["entropy_ratio"] == pytest.approx(wanted / math.log(len(p)), abs=1e-12)


@pytest.mark.capability("issue 3 §1: a linear model makes the intents' probabilities from the embedding, in the pass")
@given(st.integers(0, 2**32), st.integers(2, 30), st.integers(1, 40))
def test_model_is_scipys_softmax(seed, classes, dim):
    """Entropy and main intent are those of softmax(W u + b), for every number of classes and dimension."""
    rng = np.random.default_rng(seed)
    rows, bias = rng.normal(size=(classes, dim)) * 10, rng.normal(size=classes) * 5
    u = rng.normal(size=dim).astype(np.float32)
    out = trace(INTENT_CHURN, [{"input": u}], {"model": Weights("", {"weights": rows, "bias": bias})})[0]
    p = special.softmax(rows @ (u.astype(float) / np.linalg.norm(u.astype(float))) + bias)
    assert out["entropy_nats"] == pytest.approx(stats.entropy(p), abs=1e-9)
    assert out["intent"] == np.argmax(p)


def mains(*classes):
    """Give unclear turns whose main intents are these, of three."""
    return [[0.36 if k == c else 0.32 for k in range(3)] for c in classes]


@pytest.mark.capability("issue 3 §1: churn is 3 unclear turns in a row and 2 switches of the main intent in 5 turns")
def test_both_halves_are_needed():
    """Unclear without switches is none, switches without doubt are none, both are."""
    assert [t["is_churn"] for t in trace(INTENT_CHURN, mains(0, 0, 0, 0))] == [0, 0, 0, 0]
    clear = [[0.9, 0.05, 0.05], [0.05, 0.9, 0.05]] * 3
    assert not any(t["is_churn"] for t in trace(INTENT_CHURN, clear))
    assert [t["is_churn"] for t in trace(INTENT_CHURN, mains(0, 1, 0))] == [0, 0, 1]


def test_five_turns_are_four_pairs():
    """The pair between the fifth turn ago and the one before it no longer counts."""
    assert [t["switches"] for t in trace(INTENT_CHURN, mains(0, 1, 1, 1, 1, 1, 1))] == [0, 1, 1, 1, 1, 0, 0]


@pytest.mark.capability("issue 3 §1: unknown intents are no switch")
def test_unknown_intents_do_not_count():
    """Neither into the class of unknown intents nor out of it."""
    turns = trace(INTENT_CHURN, mains(0, 2, 1, 0), {"unknown": 2})
    assert [t["switches"] for t in turns] == [0, 0, 0, 1]


def test_source_limit_needs_nine_classes_in_nats():
    """2.1 nats are out of reach of 8 classes and in reach of 9; the ratio is in reach of all."""
    for classes, reaches in ((8, False), (9, True)):
        (out,) = trace(INTENT_CHURN, [[1 / classes] * classes])
        assert (out["entropy_nats"] > 2.1) is reaches
        assert out["entropy_ratio"] == pytest.approx(1.0)


def test_hosts_probabilities_come_first():
    """A model makes them only on turns without."""
    model = Weights("", {"weights": np.eye(2) * 50, "bias": np.zeros(2)})
    both, own = trace(INTENT_CHURN, [{"probs": [1.0, 0.0], "input": [0, 1]}, {"input": [0, 1]}], {"model": model})
    assert (both["intent"], own["intent"]) == (0, 1)


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"weights": np.ones(3), "bias": np.ones(3)},
        {"weights": np.ones((2, 3)), "bias": np.ones(3)},
        {"weights": np.ones((1, 3)), "bias": np.ones(1)},
        {"weights": np.array([["a"], ["b"]]), "bias": np.ones(2)},
    ],
)
def test_a_model_of_another_kind_is_refused(arrays):
    """The settings say what the model needs."""
    assert "its model needs `weights`" in INTENT_CHURN.check({"model": Weights("", arrays)})
    assert INTENT_CHURN.check({"model": MODEL}) == INTENT_CHURN.check({"model": None}) == ""
