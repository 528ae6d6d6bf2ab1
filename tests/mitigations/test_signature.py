from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.snapshot_drift import SNAPSHOT_DRIFT
from stabilitykit.detectors.trace import Instance, compiled_kernel
from stabilitykit.kernels.simhash import hash32, pool
from stabilitykit.mitigations.signature import BITS, signature, similarity


def kept(vectors):
    """Give the words that the compiled detector keeps of a snapshot, of vectors of any precision."""
    detector = Instance(SNAPSHOT_DRIFT, {"layers": len(vectors), "bits": BITS}, compiled_kernel(SNAPSHOT_DRIFT))
    detector.update({"input": vectors.reshape(-1)})
    return detector.memory[1].tolist()


@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 40))
def test_the_bits_are_those_of_the_compiled_detector(seed, layers, width):
    """Word by word what it keeps of the same vectors, layer after layer."""
    vectors = np.random.default_rng(seed).standard_normal((layers, width))
    assert np.frombuffer(signature(vectors), "<u4").tolist() == kept(vectors)


def test_vectors_are_read_as_float32():
    """Of a vector in a plane the rounding to float32 decides on which side it lies, as in the detector."""
    numbers, signs = pool(BITS), [1.0 - 2.0 * (hash32(i) & 1) for i in range(2)]
    vectors = np.array([[numbers[k + 1] * signs[1], -numbers[k] * signs[0]] for k in range(64)]) / 3.0
    assert np.frombuffer(signature(vectors), "<u4").tolist() == kept(vectors)


def test_the_pool_begins_again():
    """Also behind its last number."""
    vectors = np.random.default_rng(1).standard_normal((1, 4100))
    assert np.frombuffer(signature(vectors), "<u4").tolist() == kept(vectors)


@pytest.mark.parametrize(
    "vectors", [(), [0.0, 0.0], [math.nan, 1.0], [1e200, 1.0], [1e-60, 0.0], [[1.0, 2.0], [0.0, 0.0]]]
)
def test_no_direction(vectors):
    """Then nothing is said."""
    assert signature(vectors) == b""


def test_similarity():
    """The least of the layers; unknown between snapshots of different shape."""
    draw = np.random.default_rng(2)
    a = draw.standard_normal((3, 64))
    b = a.copy()
    b[1] = 0.8 * a[1] + 0.6 * draw.standard_normal(64)
    exact = float(a[1] @ b[1] / np.linalg.norm(a[1]) / np.linalg.norm(b[1]))
    assert similarity(signature(a), signature(b)) == pytest.approx(exact, abs=0.2)
    assert math.isnan(similarity(signature(a), signature(a[:2])))
    assert math.isnan(similarity(b"", b""))
