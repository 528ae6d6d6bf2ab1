"""A small pass with two detectors, as the engine's own: what the compiler tests compile."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stabilitykit.kernels import kernel
from stabilitykit.kernels.bits import float_bits, popcount64
from stabilitykit.kernels.pointers import call_detector, offset_f8, offset_i4, offset_u4

KINDS = ("f8", "f8", "u4", "u2", "f4", "f8", "i4", "pf4", "pi8", "i8", "i8", "i8")
SCALE = 0.5


@kernel
def smooth(mean: float, value: float, rate: float) -> float:
    """Move a mean towards a value."""
    return mean + rate * (value - mean)


@kernel
def drift(x: Any, f: Any, h: Any, w: Any, v: Any, c: Any, io: Any, arr: Any, ids: Any, n: Any) -> int:
    """Give a smoothed input and the number of known inputs."""
    value = x[io[0]]
    if math.isnan(value):
        x[io[1]] = math.nan
        x[io[1] + 1] = math.nan
        return 0
    h[0] += 1
    f[0] = smooth(f[0], value, c[0]) * SCALE
    x[io[1]] = math.exp(-f[0] * f[0]) / f[0]
    x[io[1] + 1] = h[0]
    return 0


@kernel
def weigh(x: Any, f: Any, h: Any, w: Any, v: Any, c: Any, io: Any, arr: Any, ids: Any, n: Any) -> int:
    """Give the sum of an array and a checksum of its ids, unknown when it is absent."""
    k = io[0]
    x[io[1]] = math.nan
    x[io[1] + 1] = math.nan
    if n[k] == 0:
        return 0
    total = 0.0
    marks = 0
    for j in range(n[k]):
        total += float(arr[k][j])
        marks += popcount64(ids[k][j]) + popcount64(float_bits(total))
        v[j] += 1
    w[0] += 1
    x[io[1]] = total
    x[io[1] + 1] = marks
    return 0


@kernel
def sample_pass(
    x: Any, f: Any, h: Any, w: Any, v: Any, c: Any, io: Any, arr: Any, ids: Any, n: Any, table: Any, count: Any
) -> int:
    """Call every detector on its own memory and give how many there were."""
    done = 0
    for i in range(count[0]):
        own_f, own_h, own_io = offset_f8(f, 4 * i), offset_u4(h, 4 * i), offset_i4(io, 2 * i)
        done += 1 + call_detector(table, i, x, own_f, own_h, w, v, c, own_io, arr, ids, n)
    return done


class Memory:
    """All blocks of the sample pass, for a run of either kind.

    Parameters
    ----------
    floats
        The float32 array signal, of at most 8 values; empty when absent.
    """

    def __init__(self, floats: list[float]) -> None:
        self.x = np.zeros(6)
        self.floats = np.array(floats, np.float32)
        self.marks = np.arange(len(floats), dtype=np.int64) - 1
        self.blocks: list[Any] = [
            self.x,
            np.zeros(8),
            np.zeros(8, np.uint32),
            np.zeros(1, np.uint16),
            np.zeros(8, np.float32),
            np.array([0.25]),
            np.array([0, 2, 0, 4], np.int32),
        ]
        self.n = np.array([len(floats)])
        self.count = np.array([2])

    def run_plain(self, value: float) -> int:
        """Run the plain functions on a value."""
        self.x[0] = value
        with np.errstate(all="ignore"):
            rest = ([self.floats], [self.marks], self.n, [drift, weigh], self.count)
            return sample_pass(*(*self.blocks, *rest))

    def run_compiled(self, value: float, entry: Any, addresses: tuple[int, ...]) -> int:
        """Run compiled code on a value."""
        self.x[0] = value
        arrays = [
            *self.blocks,
            np.array([self.floats.ctypes.data]),
            np.array([self.marks.ctypes.data]),
            self.n,
            np.array(addresses),
            self.count,
        ]
        slots = np.array([array.ctypes.data for array in arrays])
        return int(entry(slots.ctypes.data))

    def image(self) -> list[bytes]:
        """Give all that a run may have written."""
        return [block.tobytes() for block in self.blocks]
