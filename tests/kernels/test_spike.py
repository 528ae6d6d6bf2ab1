from __future__ import annotations

import numpy as np

from stabilitykit.kernels.histogram import first_bin
from stabilitykit.kernels.spike import BURST, OCTAVES, SLICE_BITS, SPIKE_WORDS, spike_bound, spike_take

LOWEST = 2.0**-7
TOP = LOWEST * 2.0 ** (OCTAVES - 1)


def test_bound_covers_the_bin_of_its_rank():
    """Whatever value all the past has, that value is not above the bound, and 3.2 % more is."""
    for value in (0.0079, 0.5, 1.0, 1.015, 1.03, 4.2, 47.3, 999.0, 131_000.0):
        h, w = np.zeros(SPIKE_WORDS, np.uint32), np.zeros(BURST, np.uint16)
        for _ in range(1000):
            spike_take(h, w, value, 0, int(first_bin(LOWEST, SLICE_BITS)), TOP)
        assert value <= spike_bound(h, TOP, 1e-9) < value * 1.0318


def test_counts_a_hundred():
    """The number of spikes is that of the last hundred values at any time."""
    h, w = np.zeros(SPIKE_WORDS, np.uint32), np.zeros(BURST, np.uint16)
    rng = np.random.default_rng(2)
    spikes = rng.random(450) < 0.2
    for n, spike in enumerate(spikes, 1):
        got = spike_take(h, w, 1.0, int(spike), int(first_bin(LOWEST, SLICE_BITS)), TOP)
        assert got == spikes[max(0, n - 100) : n].sum()
