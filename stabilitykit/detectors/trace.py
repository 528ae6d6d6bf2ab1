"""One detector on its own, uncompiled: for documentation, examples, tests and calibration.

The engine lays many detectors into one row and runs them in one pass. Here one detector gets
arrays of exactly its layout, and its kernel runs as plain Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabilitykit.signals import CATALOGUE, DetectorSpec, Layout

__all__ = ["Instance", "compiled_kernel", "settings_of", "trace"]

KINDS = ("f8", "f8", "u4", "u2", "f4", "f8", "i4", "pf4", "pi8", "i8")
"""Kind of each block of a kernel's signature."""


def settings_of(spec: DetectorSpec, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Give every setting of a detector, defaults filled in."""
    given = dict(settings or {})
    full = {s.name: given.pop(s.name, s.default) for s in spec.settings}
    if given:
        raise KeyError(f"{spec.type} has no setting {sorted(given)[0]!r}")
    return full


class Instance:
    """Memory of one detector and the arrays its kernel is called with.

    Parameters
    ----------
    spec
        The detector.
    settings
        Settings that differ from their defaults, in the unit of the setting.
    kernel
        What to call instead of ``spec.kernel``: a compiled twin, a broken one.

    Attributes
    ----------
    memory
        The four blocks that make up all of its state: copy them and the detector is copied.
    values
        What the kernel reads and writes: the scalar inputs, then the outputs.
    """

    def __init__(
        self,
        spec: DetectorSpec,
        settings: Mapping[str, Any] | None = None,
        kernel: Callable[..., Any] | None = None,
    ) -> None:
        full = settings_of(spec, settings)
        self.spec = spec
        self.kernel = kernel or spec.kernel
        self.layout: Layout = spec.layout(full)
        self.memory: tuple[NDArray[Any], ...] = (
            np.zeros(self.layout.f8, np.float64),
            np.zeros(self.layout.u4, np.uint32),
            np.zeros(self.layout.u2, np.uint16),
            np.zeros(self.layout.vec, np.float32),
        )
        self.config = np.array([*spec.config(full), 0.0], np.float64)
        self._inputs = list(spec.inputs)
        k = len(self._inputs)
        self._io = np.arange(k + 1, dtype=np.int32)
        self.values = np.full(k + len(spec.outputs), np.nan)
        self._dtypes = [CATALOGUE[s].dtype if s in CATALOGUE else "" for s in spec.inputs.values()]
        self.reset()

    def reset(self) -> None:
        """Give the memory its initial values."""
        for block in self.memory:
            block[:] = 0
        if self.layout.f8_init:
            self.memory[0][:] = self.layout.f8_init

    def update(self, inputs: Mapping[str, Any]) -> dict[str, float]:
        """Run one turn; ``inputs`` goes by setting name, absent or None is unknown, NaN out is unknown."""
        k = len(self._inputs)
        arrays: list[NDArray[Any]] = [np.zeros(0, d or "float32") for d in self._dtypes]
        self.values[:k] = np.nan
        for i, (name, dtype) in enumerate(zip(self._inputs, self._dtypes, strict=True)):
            value = inputs.get(name)
            if value is not None and dtype:
                arrays[i] = np.ascontiguousarray(value, dtype)
            elif value is not None:
                self.values[i] = value
        lengths = np.array([*(len(a) for a in arrays), 0], np.int64)
        self.kernel(self.values, *self.memory, self.config, self._io, arrays, arrays, lengths)
        return {o.name: float(v) for o, v in zip(self.spec.outputs, self.values[k:], strict=True)}


def trace(spec: DetectorSpec, rows: Iterable[Any], settings: Mapping[str, Any] | None = None) -> list[dict[str, float]]:
    """Run a fresh detector over turns and give its outputs turn by turn.

    Parameters
    ----------
    rows
        One per turn: a mapping from input setting to value, or the bare value of a detector
        with one input. None is unknown.
    settings
        Settings that differ from their defaults.
    """
    instance = Instance(spec, settings)
    first = next(iter(spec.inputs))
    return [instance.update(row if isinstance(row, Mapping) else {first: row}) for row in rows]


def compiled_kernel(spec: DetectorSpec) -> Callable[..., int]:
    """Give the compiled twin of a detector's kernel as a function of the same arrays."""
    from stabilitykit.kernels.compile import compile_entry

    entry = compile_entry(spec.kernel, KINDS)

    def kernel(*blocks: Any) -> int:
        *flat, floats, ints, lengths = blocks
        tables = [np.array([a.ctypes.data for a in arrays], np.int64) for arrays in (floats, ints)]
        addresses = np.array([b.ctypes.data for b in (*flat, *tables, lengths)], np.int64)
        return int(entry(addresses.ctypes.data))

    return kernel
