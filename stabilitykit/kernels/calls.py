"""What kernels may call besides each other: numbers, a few functions of ``math``, walking memory."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from stabilitykit.kernels import bits, pointers
from stabilitykit.kernels.ir import Unsupported, Value, llvm

__all__ = ["CALLS", "INTRINSIC"]

INTRINSIC: dict[Any, str] = {
    int: "i64", np.int64: "i64", np.uint64: "u64", float: "f64", np.float64: "f64", np.float32: "f32", np.int32: "i32",
    abs: "abs", min: "least", max: "greatest", math.sqrt: "sqrt", math.log: "log", math.exp: "exp",
    math.floor: "floor", math.isnan: "isnan", math.isinf: "isinf", math.isfinite: "isfinite",
    bits.float_bits: "bits", bits.popcount64: "ones", pointers.call_detector: "detector",
    pointers.as_u2: "*u2", pointers.as_u4: "*u4", pointers.as_u8: "*u8",
    **{getattr(pointers, f"offset_{k}"): "offset" for k in ("f8", "f4", "u8", "u4", "u2", "i8", "i4")},
}  # fmt: skip
"""A function as Python knows it -> the name of its translation."""


def _number(kind: str) -> Callable[[Any, list[Value], Any], Value]:
    return lambda f, v, _: f.b.convert(f.b.convert(v[0], "i32") if kind == "i32" else v[0], kind)


def _abs(f: Any, v: list[Value], _: Any) -> Value:
    kind = v[0].kind
    if kind in ("f64", "f32"):
        return _outside(f, f"llvm.fabs.{kind}", kind, v[:1])
    return f.b.choose(f.b.compare(ast.Lt(), v[0], Value("0", "i64", 0)), f.b.negate(v[0]), v[0])


def _extreme(order: ast.cmpop) -> Callable[[Any, list[Value], Any], Value]:
    """Give min or max with Python's own rule: a later value wins only when it compares so."""

    def made(f: Any, v: list[Value], _: Any) -> Value:
        best = v[0]
        for other in v[1:]:
            best, other, _kind = f.b.together(best, other)
            best = f.b.choose(f.b.compare(order, other, best), other, best)
        return best

    return made


def _outside(f: Any, name: str, kind: str, values: list[Value]) -> Value:
    """Call a function of LLVM or of the C library."""
    types = ", ".join(llvm(v.kind) for v in values)
    f.module.declared[name] = f"declare {llvm(kind)} @{name}({types})"
    return f.b.emit(f"call {llvm(kind)} @{name}({', '.join(f'{llvm(v.kind)} {v.text}' for v in values)})", kind)


def _libm(name: str) -> Callable[[Any, list[Value], Any], Value]:
    return lambda f, v, _: _outside(f, name, "f64", [f.b.convert(v[0], "f64")])


def _floor(f: Any, v: list[Value], _: Any) -> Value:
    return f.b.convert(_outside(f, "llvm.floor.f64", "f64", [f.b.convert(v[0], "f64")]), "i64")


def _is_nan(f: Any, v: list[Value], _: Any) -> Value:
    return f.b.compare(ast.NotEq(), v[0], v[0])


def _is_finite(f: Any, v: list[Value], _: Any) -> Value:
    """Subtract it from itself: zero for every number, NaN for the others."""
    rest = f.b.binary(ast.Sub(), v[0], v[0])
    return f.b.compare(ast.Eq(), rest, rest)


def _is_infinite(f: Any, v: list[Value], _: Any) -> Value:
    number = f.b.compare(ast.Eq(), v[0], v[0])
    return f.b.choose(_is_finite(f, v, None), Value("0", "i1"), number)


def _float_bits(f: Any, v: list[Value], _: Any) -> Value:
    return f.b.emit(f"bitcast double {f.b.convert(v[0], 'f64').text} to i64", "i64")


def _ones(f: Any, v: list[Value], _: Any) -> Value:
    return _outside(f, "llvm.ctpop.i64", "i64", [f.b.convert(v[0], "i64")])


def _seen_as(kind: str) -> Callable[[Any, list[Value], Any], Value]:
    return lambda f, v, _: Value(v[0].text, kind)


def _view(f: Any, v: list[Value], target: Any) -> Value:
    """Give a number of 32 bits with its bits read as another kind."""
    have, kind = v[0], {np.float32: "f32", np.int32: "i32"}.get(target)
    if kind is None or have.kind not in ("f32", "i32"):
        raise Unsupported("this view")
    return f.b.emit(f"bitcast {llvm(have.kind)} {have.text} to {llvm(kind)}", kind)


def _detector(f: Any, v: list[Value], _: Any) -> Value:
    """Call a C function by its place in a table of addresses."""
    address = f.b.load(v[0], v[1])
    callee = f.b.emit(f"inttoptr i64 {address.text} to ptr", "*f8")
    return f.b.emit(f"call i64 {callee.text}({', '.join(f'ptr {a.text}' for a in v[2:])})", "i64")


CALLS: dict[str, Callable[[Any, list[Value], Any], Value]] = {
    **{kind: _number(kind) for kind in ("i64", "u64", "f64", "f32", "i32")},
    **{kind: _seen_as(kind) for kind in ("*u2", "*u4", "*u8")},
    "abs": _abs, "least": _extreme(ast.Lt()), "greatest": _extreme(ast.Gt()), "sqrt": _libm("llvm.sqrt.f64"),
    "log": _libm("log"), "exp": _libm("exp"), "floor": _floor, "isnan": _is_nan, "isinf": _is_infinite,
    "isfinite": _is_finite, "bits": _float_bits, "ones": _ones, "view": _view, "detector": _detector,
    "offset": lambda f, v, _: f.b.moved(v[0], v[1]),
}  # fmt: skip
"""The translations: each takes the function in the making, the values and the Python function."""
