"""The compiled twin of a kernel: the one place where numba's options are decided.

Kernels are translated by ``front_end``; what it does not know, and everything when the environment
says ``STABILITYKIT_COMPILER=numba``, goes through numba. There a twin is made of the same function
with every global that is itself a kernel replaced by its twin (or by the intrinsic that stands in
for it). Nothing here runs at import, and nothing is compiled that the cache has.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable
from importlib.util import find_spec
from types import FunctionType
from typing import Any

from stabilitykit.kernels.cache import open_store
from stabilitykit.kernels.fingerprint import fingerprint, globals_of, is_kernel
from stabilitykit.kernels.front_end import Module
from stabilitykit.kernels.image import Image, Loaded, as_builtin, load_image
from stabilitykit.kernels.ir import Unsupported
from stabilitykit.kernels.machine_code import front_end_only, make_image

__all__ = ["compile_detector", "compile_entry", "compile_function", "is_available"]

OPTIONS: dict[str, Any] = {
    "nogil": False,
    "error_model": "numpy",
    "fastmath": False,
    "boundscheck": False,
}
"""Options of every compiled function; fastmath would change breaker states."""

_BARE = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Compiled code calls compiled code directly; each wrapper would cost 10 ms of compile time."""

_SYMBOL = "stabilitykit_code"
_ENTRY_IR = """
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_FromLongLong(i64)
define ptr @{symbol}(ptr %self, ptr %argument) {{
  %address = call i64 @PyLong_AsLongLong(ptr %argument)
  %refused = icmp eq i64 %address, -1
  br i1 %refused, label %error, label %run
run:
  %slots = inttoptr i64 %address to ptr
{load}
  %value = call i64 @"{native}"({blocks})
  %number = call ptr @PyLong_FromLongLong(i64 %value)
  ret ptr %number
error:
  ret ptr null
}}
"""
"""A builtin of one int: the address of the addresses of the blocks."""

_DETECTOR_IR = 'define i64 @{symbol}({blocks}) {{\n  %r = call i64 @"{native}"({blocks})\n  ret i64 %r\n}}\n'
_NUMBA_IR = """
declare i32 @"{numba}"(ptr, ptr, {kinds})
define internal i64 @{native}({blocks}) {{
  %result = alloca i64
  %failure = alloca ptr
  %status = call i32 @"{numba}"(ptr %result, ptr %failure, {blocks})
  %value = load i64, ptr %result
  %fine = icmp eq i32 %status, 0
  %found = select i1 %fine, i64 %value, i64 -1
  ret i64 %found
}}
"""
"""A C function around numba's own convention (status; result and exception by pointer)."""

_DETECTOR_KINDS = ("f8", "f8", "u4", "u2", "f4", "f8", "i4", "pf4", "pi8", "i8")

_LOCK = threading.RLock()
_DETECTORS: dict[Callable[..., object], Loaded] = {}
_ENTRIES: dict[tuple[Callable[..., object], tuple[str, ...]], Callable[[int], int]] = {}
_TWINS: dict[Callable[..., object], Any] = {}

if hasattr(os, "register_at_fork"):  # a fork waits for a running compile: the child finds every lock free
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)


def is_available() -> bool:
    """Tell whether numba is installed and not switched off by ``NUMBA_DISABLE_JIT``; imports nothing."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return False
    return find_spec("numba") is not None and find_spec("llvmlite") is not None


def compile_function(fn: Callable[..., Any]) -> Any:
    """Give the compiled twin of a kernel as a numba dispatcher, typed by its first call."""
    with _LOCK:
        return _njit(_with_twins(fn))


def compile_detector(fn: Callable[..., Any]) -> Loaded:
    """Compile a detector kernel, once per process; its ``address`` is for ``call_detector`` only."""
    with _LOCK:
        if fn not in _DETECTORS:
            _DETECTORS[fn] = _obtain(fingerprint(fn, "detector"), lambda: _detector_image(fn))
        return _DETECTORS[fn]


def compile_entry(fn: Callable[..., Any], kinds: tuple[str, ...]) -> Callable[[int], int]:
    """Compile the pass behind a builtin of one int, once per process.

    Parameters
    ----------
    fn
        A kernel that takes ``len(kinds)`` blocks, gives an int and never raises.
    kinds
        The kind of each block, in order: f8, f4, u8, u4, u2, i8, i4, pf4 or pi8.

    Returns
    -------
    callable
        ``entry(address)`` where ``address`` is that of an int64 array whose element k is the
        address of block k.
    """
    with _LOCK:
        if (fn, kinds) not in _ENTRIES:
            loaded = _obtain(fingerprint(fn, ("entry", kinds)), lambda: _entry_image(fn, kinds))
            _ENTRIES[fn, kinds] = as_builtin(loaded)
        return _ENTRIES[fn, kinds]


def _obtain(key: str, build: Callable[[], Image]) -> Loaded:
    """Load code from the cache, else build it, keep it and load that."""
    store = open_store()
    blob = store.load(key) if store else None
    if blob is not None:
        try:
            return load_image(Image.from_bytes(blob))
        except (LookupError, ValueError, TypeError, RuntimeError, struct.error):  # not linkable here: build it
            pass
    image = build()
    if store:
        store.save(key, image.to_bytes())
    return load_image(image)


def _detector_image(fn: Callable[..., Any]) -> Image:
    return _image(fn, _DETECTOR_KINDS, _DETECTOR_IR)


def _entry_image(fn: Callable[..., Any], kinds: tuple[str, ...]) -> Image:
    return _image(fn, kinds, _ENTRY_IR)


def _image(fn: Callable[..., Any], kinds: tuple[str, ...], form: str) -> Image:
    """Make the machine code of a kernel that takes blocks, in one of the two outer forms."""
    load = "\n".join(
        f"  %p{k} = getelementptr i64, ptr %slots, i64 {k}\n  %b{k} = load ptr, ptr %p{k}" for k in range(len(kinds))
    )
    blocks = ", ".join(f"ptr %b{k}" for k in range(len(kinds)))
    try:
        if os.environ.get("STABILITYKIT_COMPILER") == "numba":
            raise Unsupported("numba was asked for")
        module = Module()
        native, result = module.add(fn, tuple(f"*{kind}" for kind in kinds))
        if result != "i64":
            raise Unsupported(f"a result of {result}")
        return make_image(module.text() + form.format(symbol=_SYMBOL, native=native, load=load, blocks=blocks), _SYMBOL)
    except Unsupported:
        made = _compile(_with_twins(fn), kinds)
    outer = _NUMBA_IR.format(
        numba=made.fndesc.llvm_func_name, native="native", kinds=", ".join(["ptr"] * len(kinds)), blocks=blocks
    )
    return make_image(outer + form.format(symbol=_SYMBOL, native="native", load=load, blocks=blocks), _SYMBOL, made)


def _compile(fn: Callable[..., Any], kinds: tuple[str, ...]) -> Any:
    """Compile a kernel that takes blocks with numba, and give numba's result."""
    from numba import types

    from stabilitykit.kernels._intrinsics import POINTERS

    dispatcher = _njit(fn, **_BARE)
    with front_end_only():
        dispatcher.compile(types.int64(*[POINTERS[kind] for kind in kinds]))
    (result,) = dispatcher.overloads.values()
    return result


def _njit(fn: Callable[..., Any], **wrappers: bool) -> Any:
    """Mark a function for numba with the options of every compiled function."""
    from numba import njit

    mark: Any = njit
    return mark(fn, **{**OPTIONS, **getattr(fn, "__kernel_options__", {})}, **wrappers)


def _twin(fn: Callable[..., Any]) -> Any:
    """Give what compiled code calls instead of a kernel; it cannot be called from Python."""
    from stabilitykit.kernels._intrinsics import INTRINSICS

    if fn in INTRINSICS:
        return INTRINSICS[fn]
    if fn not in _TWINS:
        _TWINS[fn] = _typed_without_values(_njit(_with_twins(fn), **_BARE))
    return _TWINS[fn]


def _typed_without_values(dispatcher: Any) -> Any:
    """Keep numba from compiling a twin once more for every literal it is called with."""
    from numba.core.types.misc import unliteral

    by_value = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, kws: by_value(
        tuple(unliteral(kind) for kind in args), {name: unliteral(kind) for name, kind in kws.items()}
    )
    return dispatcher


def _with_twins(fn: Callable[..., Any]) -> FunctionType:
    """Copy a kernel so that it sees the twins of the kernels that it uses."""
    assert isinstance(fn, FunctionType)
    seen = {name: _twin(value) if is_kernel(value) else value for name, value in globals_of(fn).items()}
    seen |= {"__builtins__": fn.__globals__["__builtins__"], "__name__": fn.__module__}
    twin = FunctionType(fn.__code__, seen, fn.__name__, fn.__defaults__, fn.__closure__)
    twin.__dict__.update(fn.__dict__)
    return twin
