from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stabilitykit.kernels import kernel
from stabilitykit.kernels.compile import compile_entry
from stabilitykit.kernels.pointers import (
    as_u2,
    as_u4,
    as_u8,
    offset_f4,
    offset_f8,
    offset_i4,
    offset_i8,
    offset_u2,
    offset_u4,
    offset_u8,
)

BLOCKS = ("f8", "f4", "u8", "u4", "u2", "i8", "i4")


@kernel
def mark_third(f8: Any, f4: Any, u8: Any, u4: Any, u2: Any, i8: Any, i4: Any) -> int:
    """Write into the third element of every block, through a moved start."""
    offset_f8(f8, 2)[0] = 1
    offset_f4(f4, 2)[0] = 2
    offset_u8(u8, 2)[0] = 3
    offset_u4(u4, 2)[0] = 4
    offset_u2(u2, 2)[0] = 5
    offset_i8(i8, 2)[0] = -6
    offset_i4(i4, 2)[0] = -7
    return 0


@kernel
def mark_as(f8: Any, f4: Any, u8: Any, u4: Any, u2: Any, i8: Any, i4: Any) -> int:
    """Write integers of every width into the float64 block."""
    as_u8(f8)[0] = 1
    as_u4(f8)[3] = 2
    as_u2(f8)[11] = 3
    return 0


def blocks() -> list[Any]:
    """Give one block of each kind."""
    return [np.zeros(4, kind) for kind in BLOCKS]


@pytest.mark.parametrize("fn", [mark_third, mark_as])
def test_both_modes_write_the_same_bytes(fn, cache_dir):
    """A moved or reinterpreted block is the same memory, compiled and plain."""
    plain, fast = blocks(), blocks()
    slots = np.array([block.ctypes.data for block in fast])
    fn(*plain)
    compile_entry(fn, BLOCKS)(slots.ctypes.data)
    assert [b.tobytes() for b in plain] == [b.tobytes() for b in fast]
    assert any(b.any() for b in plain)
