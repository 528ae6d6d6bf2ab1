"""What plain Python cannot say to numba. Imported by ``compile`` only: importing it imports numba."""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from stabilitykit.kernels import bits, pointers

POINTERS: dict[str, Any] = {
    "f8": types.CPointer(types.float64),
    "f4": types.CPointer(types.float32),
    "u8": types.CPointer(types.uint64),
    "u4": types.CPointer(types.uint32),
    "u2": types.CPointer(types.uint16),
    "i8": types.CPointer(types.int64),
    "i4": types.CPointer(types.int32),
    "pf4": types.CPointer(types.CPointer(types.float32)),
    "pi8": types.CPointer(types.CPointer(types.int64)),
}
"""Kind of a block -> its compiled type."""

DETECTOR = types.int64(*[POINTERS[k] for k in ("f8", "f8", "u4", "u2", "f4", "f8", "i4", "pf4", "pi8", "i8")])
"""Compiled signature of every detector kernel."""


@intrinsic
def _float_bits(typingctx: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _popcount64(typingctx: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    word = types.uint64 if x == types.uint64 else types.int64
    return types.int64(word), generate


def _offset(kind: str) -> Any:
    """Make the intrinsic that moves a pointer of one kind by k elements."""
    pointer = POINTERS[kind]

    def offset(typingctx: Any, p: Any, k: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return builder.gep(args[0], [args[1]])

        return (pointer(pointer, types.int64), generate) if p == pointer else None

    return intrinsic(offset)


def _seen_as(kind: str) -> Any:
    """Make the intrinsic that sees a float64 pointer as another kind."""
    pointer = POINTERS[kind]

    def seen_as(typingctx: Any, p: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return builder.bitcast(args[0], context.get_value_type(pointer))

        return (pointer(POINTERS["f8"]), generate) if p == POINTERS["f8"] else None

    return intrinsic(seen_as)


@intrinsic
def _call_detector(
    typingctx: Any,
    address_table: Any,
    i: Any,
    x: Any,
    f: Any,
    h: Any,
    w: Any,
    v: Any,
    c: Any,
    io: Any,
    arr: Any,
    ids: Any,
    n: Any,
) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(64), [a.type for a in args[2:]]).as_pointer()
        address = builder.load(builder.gep(args[0], [args[1]]))
        return builder.call(builder.inttoptr(address, kind), args[2:])

    return types.int64(POINTERS["i8"], types.int64, *DETECTOR.args), generate


INTRINSICS: dict[Callable[..., object], Any] = {
    bits.float_bits: _float_bits,
    bits.popcount64: _popcount64,
    pointers.as_u2: _seen_as("u2"),
    pointers.as_u4: _seen_as("u4"),
    pointers.as_u8: _seen_as("u8"),
    pointers.call_detector: _call_detector,
    pointers.offset_f4: _offset("f4"),
    pointers.offset_f8: _offset("f8"),
    pointers.offset_i4: _offset("i4"),
    pointers.offset_i8: _offset("i8"),
    pointers.offset_u2: _offset("u2"),
    pointers.offset_u4: _offset("u4"),
    pointers.offset_u8: _offset("u8"),
}
"""Plain function -> the intrinsic that stands in for it in compiled code."""
