"""KL divergence over a vocabulary of 129,280 log-probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.measure import Figure, significant, times
from stabilitykit.kernels import kernel
from stabilitykit.kernels.compile import compile_entry
from stabilitykit.kernels.divergence import full_moments


@kernel
def forward(a: Any, b: Any, n: Any, x: Any) -> int:
    """KL(a || b) and what the detector checks with it."""
    mass, weighted, cross, _zeros = full_moments(a, b, n[0])
    x[0] = cross / mass
    x[1] = mass
    x[2] = weighted / mass
    return 0


def run() -> list[Figure]:
    import scipy.stats

    r = np.random.default_rng(3)
    logits = r.standard_normal((2, 129_280)) * 3
    a, b = (logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))).astype(np.float32)
    size, x = np.array([a.size]), np.zeros(3)
    slots = np.array([v.ctypes.data for v in (a, b, size, x)])
    entry, address = compile_entry(forward, ("f4", "f4", "i8", "f8")), slots.ctypes.data
    entry(address)
    np.testing.assert_allclose(x[0], np.sum(np.exp(a) * (a - b)), rtol=1e-4)
    ours, numpys, scipys = times(
        [
            lambda: entry(address),
            lambda: np.sum(np.exp(a) * (a - b)),
            lambda: scipy.stats.entropy(np.exp(a), np.exp(b)),
        ],
        31,
    )
    note = f"{ours / 1e3:.0f} us against {numpys / 1e3:.0f} and {scipys / 1e3:.0f} us"
    return [
        Figure("kl_numpy", "KL over 129,280 / numpy", significant(ours / numpys), 0.5, note),
        Figure("kl_scipy", "KL over 129,280 / scipy", significant(ours / scipys), 0.03),
    ]
