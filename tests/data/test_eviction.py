from __future__ import annotations

import numpy as np
import pytest

from benchmarks.subjects import eviction
from benchmarks.subjects.eviction_sketch import hybrid_as_written, random_leaf, survival_sketch
from stabilitykit.mitigations.kv.simulate import hits_of
from stabilitykit.mitigations.kv.trace import Trace

CAP = 60


@pytest.fixture(scope="module")
def trace():
    """Conversations that grow and come back, beside prompts that never do."""
    rng, paths, fresh = np.random.default_rng(2), [], 0
    growing: list[list[int]] = [[0] for _ in range(12)]
    for r in range(600):
        if r % 3:
            path = growing[int(rng.integers(12))]
            path.append(fresh := fresh + 1)
            del path[12:]
        else:
            path = [0, *range(fresh + 1, fresh + 9)]
            fresh += 8
        paths.append(list(path))
    flat = np.array([block for path in paths for block in path], np.int64)
    starts = np.cumsum([0, *map(len, paths)])
    return eviction.densely(Trace(flat, starts, np.arange(600.0), np.zeros(600, np.int64)))


@pytest.mark.slow
def test_the_references_are_caches(trace):
    """None of them hits more than who knows the future, and with room for everything all hit what can be hit."""
    bound, distinct = hits_of(trace, "belady", CAP).sum(), trace.distinct
    for cap in (CAP, distinct):
        served = (
            survival_sketch(trace.blocks, trace.starts, trace.partial, distinct, cap),
            hybrid_as_written(trace.blocks, trace.starts, trace.at_s, distinct, cap),
            random_leaf(trace.blocks, trace.starts, cap),
        )
        for hits in served:
            assert (hits <= np.diff(trace.starts)).all()
            assert 0 < hits.sum() <= (bound if cap == CAP else len(trace.blocks) - distinct)
            assert cap == CAP or hits.sum() == len(trace.blocks) - distinct


@pytest.mark.slow
@pytest.mark.capability("issue 5 §2: survival never forgets as well as the sketch that it comes from")
def test_survival_is_the_sketch(trace):
    """With a history of everything the policy hits what the sketch hits, within a few per cent."""
    sketch = survival_sketch(trace.blocks, trace.starts, trace.partial, trace.distinct, CAP).sum()
    ours = hits_of(trace, "survival", CAP, ghosts=trace.distinct, classes="uses", prior=50.0).sum()
    assert ours == pytest.approx(sketch, rel=0.06)


@pytest.mark.capability("issue 5 §2: eviction is configured on the first half of a trace and scored on the second")
def test_the_second_half_chooses_nothing(trace):
    """Whatever comes later, the settings are the same, and the first half is served the same."""
    other = Trace(trace.blocks.copy(), trace.starts, trace.at_s, trace.partial)
    middle = int(trace.starts[300])
    other.blocks[middle:] = np.random.default_rng(0).permutation(other.blocks[middle:])
    one, two = (eviction.best_choice(t) for t in (trace, other))
    assert one == two
    served = [hits_of(t, "survival", CAP, **one) for t in (trace, other)]
    assert (served[0][:300] == served[1][:300]).all()
    assert served[0][300:].sum() != served[1][300:].sum()


def test_intervals_hold_the_mean(trace):
    """Weights of a bootstrap draw are whole numbers that add up to the requests."""
    weights = eviction.resampled(np.diff(trace.starts))
    assert (weights.sum(axis=1) == 600).all()
    assert (weights == np.round(weights)).all()
