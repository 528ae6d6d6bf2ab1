"""Walking memory: the same source on C pointers (compiled) and on arrays (plain Python).

``p[i]`` reads and writes in both modes. What differs is moving the start of a block and calling a
detector, so these are functions. A compiled block that is never read may be a null pointer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stabilitykit.kernels._registry import kernel

__all__ = [
    "as_u2",
    "as_u4",
    "as_u8",
    "call_detector",
    "offset_f4",
    "offset_f8",
    "offset_i4",
    "offset_i8",
    "offset_u2",
    "offset_u4",
    "offset_u8",
]

Block = Any
"""A one-dimensional array in plain Python, a C pointer in compiled code."""


@kernel
def offset_f8(p: Block, k: int) -> Block:
    """Give the float64 block that starts k elements into p."""
    return p[k:]


@kernel
def offset_f4(p: Block, k: int) -> Block:
    """Give the float32 block that starts k elements into p."""
    return p[k:]


@kernel
def offset_u8(p: Block, k: int) -> Block:
    """Give the uint64 block that starts k elements into p."""
    return p[k:]


@kernel
def offset_u4(p: Block, k: int) -> Block:
    """Give the uint32 block that starts k elements into p."""
    return p[k:]


@kernel
def offset_u2(p: Block, k: int) -> Block:
    """Give the uint16 block that starts k elements into p."""
    return p[k:]


@kernel
def offset_i8(p: Block, k: int) -> Block:
    """Give the int64 block that starts k elements into p."""
    return p[k:]


@kernel
def offset_i4(p: Block, k: int) -> Block:
    """Give the int32 block that starts k elements into p."""
    return p[k:]


@kernel
def as_u8(p: Block) -> Block:
    """See the bytes of a float64 block as uint64."""
    return p.view(np.uint64)


@kernel
def as_u4(p: Block) -> Block:
    """See the bytes of a float64 block as uint32."""
    return p.view(np.uint32)


@kernel
def as_u2(p: Block) -> Block:
    """See the bytes of a float64 block as uint16."""
    return p.view(np.uint16)


@kernel
def call_detector(
    address_table: Any,
    i: int,
    x: Block,
    f: Block,
    h: Block,
    w: Block,
    v: Block,
    c: Block,
    io: Block,
    arr: Any,
    ids: Any,
    n: Block,
) -> int:
    """Call detector i of a table of plain functions; compiled, a table of int64 addresses."""
    return int(address_table[i](x, f, h, w, v, c, io, arr, ids, n))
