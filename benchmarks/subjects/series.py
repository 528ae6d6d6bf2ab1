"""One compiled detector over a column of values: what the subjects that score series have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabilitykit.detectors.trace import KINDS, Instance
from stabilitykit.kernels.compile import compile_entry
from stabilitykit.signals import DetectorSpec


class Runner:
    """A detector with one scalar input whose compiled kernel is called with the same addresses every turn."""

    def __init__(self, spec: DetectorSpec, settings: Mapping[str, Any] | None = None) -> None:
        self.one = Instance(spec, settings)
        self.entry = compile_entry(spec.kernel, KINDS)
        nothing, no_length = np.zeros(1, np.int64), np.zeros(2, np.int64)
        blocks = (self.one.values, *self.one.memory, self.one.config, self.one._io, nothing, nothing, no_length)
        self.kept = blocks
        self.addresses = np.array([b.ctypes.data for b in blocks], np.int64)
        self.names = {o.name: k for k, o in enumerate(spec.outputs, start=1)}

    def run(self, values: NDArray[np.float64], *outputs: str) -> list[NDArray[np.float64]]:
        """Give those outputs turn by turn, starting afresh; NaN is unknown."""
        self.one.reset()
        x, entry, at = self.one.values, self.entry, self.addresses.ctypes.data
        places = [self.names[name] for name in outputs]
        told = np.empty((len(values), len(places)))
        for turn, value in enumerate(values.tolist()):
            x[0] = value
            entry(at)
            told[turn] = x[places]
        return list(told.T)

    def feed(self, values: NDArray[np.float64]) -> None:
        """Take values in, starting afresh; what is said meanwhile is not kept."""
        self.one.reset()
        x, entry, at = self.one.values, self.entry, self.addresses.ctypes.data
        for value in values.tolist():
            x[0] = value
            entry(at)
