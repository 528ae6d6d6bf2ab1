from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.snapshot_drift import DECISIONS, SNAPSHOT_DRIFT
from stabilitykit.detectors.trace import Instance, compiled_kernel, trace
from stabilitykit.kernels.compile import is_available
from tests.detectors.agreement import check_compiled, check_twins
from tests.naive.snapshot_drift import NaiveSnapshotDrift

COMPONENTS = st.one_of(st.floats(-4, 4, width=32), st.sampled_from([0.0, 1.0, 1e30, math.nan, math.inf]))
SNAPSHOTS = st.one_of(
    st.none(),
    st.lists(st.floats(-4, 4, width=32), min_size=6, max_size=6),
    st.lists(COMPONENTS, max_size=9),
)
SETTINGS = st.fixed_dictionaries(
    {"layers": st.sampled_from([1, 2, 3]), "bits": st.sampled_from([32, 95]), "decision": st.sampled_from(DECISIONS)}
)


@pytest.mark.capability("issue 3 §1: `snapshot_drift` is its naive twin, zeros and NaN included")
@given(st.lists(SNAPSHOTS, max_size=5), SETTINGS)
def test_equals_the_naive_twin(rows, settings):
    """Any snapshots: kernel and twin agree, unknowns included."""
    check_twins(SNAPSHOT_DRIFT, NaiveSnapshotDrift, [{"input": row} for row in rows], settings)


@given(st.lists(SNAPSHOTS, max_size=5), SETTINGS)
def test_compiled_equals_plain(rows, settings):
    """Machine code gives the same bits and the same memory."""
    check_compiled(SNAPSHOT_DRIFT, [{"input": row} for row in rows], settings)


def pair(rng, size, cosine):
    """Give two vectors with a cosine, a few components of them far greater than the rest, as hidden states have."""
    u, w = rng.standard_normal(size), rng.standard_normal(size)
    u[:3] *= 5
    u /= np.linalg.norm(u)
    w -= u * (u @ w)
    return u, cosine * u + math.sqrt(1 - cosine**2) * w / np.linalg.norm(w)


def similarities(pairs, **settings):
    """Give the similarity of each pair, each in a detector that starts afresh."""
    found = Instance(
        SNAPSHOT_DRIFT, {"layers": 1, **settings}, compiled_kernel(SNAPSHOT_DRIFT) if is_available() else None
    )
    out = []
    for u, v in pairs:
        found.reset()
        found.update({"input": u})
        out.append(found.update({"input": v})["similarity"])
    return np.array(out)


@pytest.mark.capability("issue 3 §1: signatures of 256 bits decide the cosine .72 as the exact one does")
@pytest.mark.parametrize(("bits", "agreement"), [(64, 0.868), (128, 0.905), (256, 0.930), (512, 0.958)])
def test_agreement_with_the_exact_decision(bits, agreement):
    """Cosines even between .3 and 1: within three deviations of what B5.1 measured."""
    rng = np.random.default_rng(5)
    cosines = rng.uniform(0.3, 1.0, 1500)
    found = similarities([pair(rng, 256, c) for c in cosines], bits=bits)
    share = np.mean((found < 0.72) == (cosines < 0.72))
    assert abs(share - agreement) < 3 * math.sqrt(agreement * (1 - agreement) / 1500)


@pytest.mark.parametrize("cosine", [0.3, 0.72, 0.95])
def test_differing_bits_are_binomial(cosine):
    """Mean and deviation of the differing bits are those of 256 independent planes."""
    rng = np.random.default_rng(6)
    found = similarities([pair(rng, 512, cosine) for _ in range(600)])
    differing = 256 * np.arccos(found) / math.pi
    p = math.acos(cosine) / math.pi
    assert np.mean(differing) == pytest.approx(256 * p, abs=5 * math.sqrt(256 * p * (1 - p) / 600))
    assert np.std(differing) == pytest.approx(math.sqrt(256 * p * (1 - p)), rel=0.15)


def test_the_sources_three_bits_call_nearly_equal_a_change():
    """Of 64 bits more than three differ nine times in ten at a cosine of .95, and a third of the time at .99."""
    rng = np.random.default_rng(7)
    for cosine, share in ((0.95, 0.90), (0.99, 0.33)):
        found = similarities([pair(rng, 256, cosine) for _ in range(400)], bits=64)
        assert np.mean(64 * np.arccos(found) / math.pi > 3.5) == pytest.approx(share, abs=0.08)


def test_the_three_decisions():
    """One of three layers has turned round: any is -1, the majority sees nothing, the mean stands between."""
    a, b, c = [1.0, 2.0], [3.0, -1.0], [0.5, 0.25]
    rows = [[*a, *b, *c], [*a, *(-x for x in b), *c]]
    found = [trace(SNAPSHOT_DRIFT, rows, {"decision": d})[1]["similarity"] for d in DECISIONS]
    assert found == pytest.approx([-1.0, 1.0, 1 / 3])
    rows = [[*a, *b], [*a, *(-x for x in b)]]
    (_, out) = trace(SNAPSHOT_DRIFT, rows, {"layers": 2, "decision": "majority"})
    assert out["similarity"] == 1.0  # one of two is not more than half
    assert (out["worst_similarity"], out["worst_layer"]) == (-1.0, 1)


def test_another_dimension_starts_afresh():
    """The new snapshot is kept, and the one after it compared with it."""
    outs = trace(SNAPSHOT_DRIFT, [[1.0] * 3, [1.0] * 6, [1.0] * 6, [1.0] * 5, [1.0] * 6])
    assert [out["similarity"] for out in outs] == pytest.approx([math.nan, math.nan, 1, math.nan, 1], nan_ok=True)


def test_signatures_of_other_hyperplanes_are_not_compared():
    """Memory kept by a library with another version starts afresh, like a first snapshot."""
    found = Instance(SNAPSHOT_DRIFT, {"layers": 1})
    found.update({"input": [1.0, 2.0]})
    found.memory[0][0] += 1
    assert math.isnan(found.update({"input": [1.0, 2.0]})["similarity"])
    assert found.update({"input": [1.0, 2.0]})["similarity"] == 1


def test_longer_than_the_pool():
    """Beyond 4,096 components the pool begins again with other signs: the estimate stays right."""
    rng = np.random.default_rng(8)
    found = similarities([pair(rng, 9000, c) for c in (0.4, 0.72, 0.9)], bits=1024)
    assert found == pytest.approx([0.4, 0.72, 0.9], abs=0.12)
    half = np.tile(rng.standard_normal(4096), 2)
    half[4096:] *= -1
    assert abs(similarities([(half, np.abs(half))], bits=1024)[0] - 0.0) < 0.12
