"""A drift update in the pass: `drift_probe` with weights on 1,152 components, against a cosine of 384 components."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.measure import Figure, over, significant, times
from stabilitykit.detectors.drift_probe import DRIFT_PROBE
from stabilitykit.detectors.trace import KINDS, Instance
from stabilitykit.kernels import kernel
from stabilitykit.kernels.compile import compile_entry
from stabilitykit.kernels.cosine import dot
from stabilitykit.signals import Weights

DIM, CALLS = 384, 1000


@kernel
def cosine(u, v, out):
    """Give the cosine distance of two vectors."""
    out[0] = 1.0 - dot(u, 0, v, 0, DIM) / math.sqrt(dot(u, 0, u, 0, DIM) * dot(v, 0, v, 0, DIM))
    return 0


@kernel
def nothing(u, v, out):
    """Do nothing."""
    return 0


def address_of(*blocks: np.ndarray) -> np.ndarray:
    """Give the addresses that an entry takes."""
    return np.array([b.ctypes.data for b in blocks], np.int64)


def run() -> list[Figure]:
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=DIM) for name in ("centre", "now", "before", "product")}
    arrays |= {"features": rng.normal(size=10), "means": np.ones(10), "bias": np.zeros(1), "threshold": np.full(1, 0.5)}
    probe = Instance(DRIFT_PROBE, {"model": Weights("", {**arrays, "centre": arrays["centre"] * 0.02})})
    u, v = rng.standard_normal((2, DIM)).astype(np.float32)
    out, io, lengths = np.zeros(1), np.arange(5, dtype=np.int32), np.array([DIM, 0, 0, 0], np.int64)
    probe.values[1:4] = 500.0, 20.0, 1.0
    tables = np.array([u.ctypes.data, 0, 0, 0], np.int64), np.zeros(4, np.int64)
    blocks = address_of(probe.values, *probe.memory, probe.config, io, *tables, lengths)
    pair = address_of(u, v, out)
    calls = [
        (compile_entry(DRIFT_PROBE.kernel, KINDS), blocks.ctypes.data),
        (compile_entry(cosine, ("f4", "f4", "f8")), pair.ctypes.data),
        (compile_entry(nothing, ("f4", "f4", "f8")), pair.ctypes.data),
    ]
    found = times([over([at] * CALLS, entry) for entry, at in calls])
    update, one, empty = (t / CALLS for t in found)
    assert not math.isnan(probe.values[5])
    size = sum(block.nbytes for block in probe.memory)
    note = f"{update - empty:.0f} ns against {one - empty:.0f} ns"
    return [
        Figure(
            "drift_update", "drift_probe update / cosine of 384", significant((update - empty) / (one - empty)), 7, note
        ),
        Figure("drift_bytes", "memory of a drift_probe, KB", significant(size / 1000), 5),
    ]
