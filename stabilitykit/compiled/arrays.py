"""The array inputs of a generation: copied into buffers of its own, or read in place when they are long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabilitykit.compiled.layout import ArrayInput
from stabilitykit.decision import Fault

__all__ = ["Arrays"]

_LONGEST = 1 << 22
"""More elements than any signal has; looking at them would stall every other conversation."""
_STAGED = 8192
"""Arrays up to this long are copied; longer ones are read where they are."""


class Arrays:
    """Brings arrays in, and knows where they lie.

    Attributes
    ----------
    bound
        The array behind each input, for the uncompiled pass.
    addresses
        Of the float32 and of the int64 inputs, for the compiled pass.
    lengths
        int64: elements of each input on this turn, 0 where there is none.
    is_used
        Whether any length may be other than 0.
    """

    def __init__(self, inputs: Sequence[ArrayInput]) -> None:
        count = max(1, len(inputs))
        self._inputs = inputs
        self.lengths = np.zeros(count, np.int64)
        self.addresses = (np.zeros(count, np.uint64), np.zeros(count, np.uint64))
        self.is_used = False
        self._length_of: Any = memoryview(self.lengths)  # type: ignore[arg-type]  # setting one costs a third
        self._dtypes = [np.dtype(a.spec.dtype) for a in inputs]
        self._staging = [np.zeros(max(64, min(a.length, _STAGED)), a.spec.dtype) for a in inputs]
        self._exact = [buffer[:0] for buffer in self._staging]
        self.bound: list[NDArray[Any]] = [np.zeros(0) for _ in inputs]
        for k, buffer in enumerate(self._staging):
            self._bind(k, buffer)

    def _bind(self, k: int, array: NDArray[Any]) -> None:
        self.bound[k] = array
        self.addresses[int(self._inputs[k].spec.dtype == "int64")][k] = array.ctypes.data

    def take(self, values: Sequence[Any]) -> list[Fault]:
        """Bring one value for each input in; gives the faults found on the way."""
        faults: list[Fault] = []
        self.is_used = True
        for k, value in enumerate(values):
            exact = self._exact[k]
            if value.__class__ is np.ndarray and value.dtype is self._dtypes[k] and value.shape == exact.shape:
                exact[:] = value  # as the last one: checked then, and nothing has to be converted
                self._length_of[k] = exact.size
                continue
            self._length_of[k] = 0
            if value is not None:
                fault = self._take_new(k, value)
                if fault is not None:
                    faults.append(fault)
        return faults

    def _take_new(self, k: int, value: Any) -> Fault | None:
        a = self._inputs[k]
        name = a.spec.name
        try:
            if np.ma.isMaskedArray(value) and np.ma.is_masked(value):
                return Fault("invalid", name, "masked elements")
            array = np.asarray(value)  # never a subclass: its size and reshape may say anything
            if array.size == 0:
                return None
            if array.size > _LONGEST:
                return Fault("dimension", name, f"{array.size:,} elements; {_LONGEST:,} are taken")
            if array.dtype.kind not in "fiub" or (a.spec.dtype == "int64" and array.dtype.kind == "f"):
                return Fault("type_mismatch", name, f"array of {array.dtype.name}")
            if array.ndim != 1 and name not in ("snapshot", "attention_mask"):
                return Fault("dimension", name, f"{array.ndim} dimensions")
        except Exception:  # whatever the host's object does when read as an array
            return Fault("type_mismatch", name, type(value).__name__)
        if a.length and array.size != a.length:
            return Fault("dimension", name, f"{array.size}, not {a.length}")
        with np.errstate(all="ignore"):
            self._hold(k, array.reshape(-1))
        self._length_of[k] = array.size
        return None

    def _hold(self, k: int, array: NDArray[Any]) -> None:
        """Copy an array, or bind it when it is long."""
        self._exact[k] = self._staging[k][:0]
        if array.size > _STAGED:
            self._bind(k, np.ascontiguousarray(array, self._dtypes[k]))
            return
        if array.size > self._staging[k].size:
            self._staging[k] = np.zeros(array.size, self._dtypes[k])
        if self.bound[k] is not self._staging[k]:
            self._bind(k, self._staging[k])
        self._staging[k][: array.size] = array
        self._exact[k] = self._staging[k][: array.size]

    def forget(self) -> None:
        """Mark every input as absent."""
        self.is_used = False
        self.lengths[:] = 0
