"""The compiled twin of a kernel: the one place where numba's options are decided.

A twin is made of the same function with every global that is itself a kernel replaced by its twin
(or by the intrinsic that stands in for it). Nothing here runs at import. Numba itself is imported
only when something has to be compiled: not in a process that finds all its code in the cache.
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
from stabilitykit.kernels.image import Image, Loaded, as_builtin, load_image
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

_ENTRY = "stabilitykit_entry"
_ENTRY_IR = """
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare i32 @"{native}"(ptr, ptr, i64)
define ptr @{entry}(ptr %self, ptr %argument) {{
  %result = alloca i64
  %failure = alloca ptr
  %address = call i64 @PyLong_AsLongLong(ptr %argument)
  %refused = icmp eq i64 %address, -1
  br i1 %refused, label %error, label %run
run:
  %status = call i32 @"{native}"(ptr %result, ptr %failure, i64 %address)
  %value = load i64, ptr %result
  %number = call ptr @PyLong_FromLongLong(i64 %value)
  ret ptr %number
error:
  ret ptr null
}}
"""
"""A builtin of one int around numba's own convention (status; result and exception by pointer).

Kernels never raise, so the status is not looked at.
"""

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
    from stabilitykit.kernels._intrinsics import DETECTOR

    result = _compile(_with_twins(fn), DETECTOR)
    return make_image(result, result.fndesc.llvm_func_name)


def _entry_image(fn: Callable[..., Any], kinds: tuple[str, ...]) -> Image:
    from numba import types

    from stabilitykit.kernels._intrinsics import slot_loader

    load_slots, run = slot_loader(kinds), _twin(fn)

    def entry(address: int) -> int:  # pragma: no cover - runs compiled only
        return int(run(*load_slots(address)))

    result = _compile(entry, types.int64(types.int64))
    return make_image(result, _ENTRY, _ENTRY_IR.format(entry=_ENTRY, native=result.fndesc.llvm_func_name))


def _compile(fn: Callable[..., Any], sig: Any) -> Any:
    """Compile one signature and give numba's result."""
    dispatcher = _njit(fn, **_BARE)
    with front_end_only():
        dispatcher.compile(sig)
    return dispatcher.overloads[sig.args]


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
