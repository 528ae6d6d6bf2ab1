"""Call a detector's compiled twin with the arrays that its plain kernel takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stabilitykit.kernels import kernel
from stabilitykit.kernels.compile import compile_detector, compile_entry
from stabilitykit.kernels.pointers import call_detector

KINDS = ("i8", "f8", "f8", "u4", "u2", "f4", "f8", "i4", "pf4", "pi8", "i8")


@kernel
def call_one(table, x, f, h, w, v, c, io, arr, ids, n):
    """Call the first detector of a table."""
    return call_detector(table, 0, x, f, h, w, v, c, io, arr, ids, n)


def compiled(fn: Callable[..., Any]) -> Callable[..., int]:
    """Give a function with the signature of a kernel that runs its machine code."""
    table = np.array([compile_detector(fn).address], np.int64)
    entry = compile_entry(call_one, KINDS)

    def run(x, f, h, w, v, c, io, arr, ids, n):
        floats, ints = addresses(arr), addresses(ids)
        return entry(addresses([table, x, f, h, w, v, c, io, floats, ints, n]).ctypes.data)

    return run


def addresses(arrays):
    """Give the addresses of arrays as an array."""
    return np.array([a.ctypes.data for a in arrays], np.int64)
