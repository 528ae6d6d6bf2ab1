"""What a piece of compiled code depends on, as one hash: the name of its file in the cache.

The bytecode of the kernel and of every kernel that it reaches is hashed, not its source text:
bytecode is what gets compiled, and it is there when sources are not.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from stabilitykit.kernels._registry import KERNELS
from stabilitykit.kernels.image import host

__all__ = ["fingerprint", "globals_of", "is_kernel"]

_GENERATORS = ("_intrinsics.py", "calls.py", "compile.py", "front_end.py", "image.py", "ir.py", "machine_code.py")
"""The files that decide what becomes of the bytecode."""


def fingerprint(fn: Callable[..., Any], form: object) -> str:
    """Hash everything that the compiled form of a kernel depends on.

    Parameters
    ----------
    fn
        The kernel.
    form
        How it is compiled: anything with a stable ``repr``.

    Raises
    ------
    OSError
        When the package's own files cannot be read, as in a zip file.
    """
    state = hashlib.sha256(repr((form, _toolchain())).encode())
    for part in _reached(fn):
        state.update(repr(part).encode())
    return state.hexdigest()


def is_kernel(value: object) -> bool:
    """Tell whether a value is a function under ``@kernel``."""
    return isinstance(value, FunctionType) and KERNELS.get(f"{value.__module__}.{value.__qualname__}") is value


def globals_of(fn: FunctionType) -> dict[str, Any]:
    """Give the module globals that a function may read, by name, in the order of its code."""
    return {name: fn.__globals__[name] for name in fn.__code__.co_names if name in fn.__globals__}


def _reached(fn: Callable[..., Any]) -> Iterator[tuple[object, ...]]:
    """Yield the bytecode and the constants of a kernel and of all that it calls, each once."""
    todo, seen = [fn], {fn}
    while todo:
        current = todo.pop()
        assert isinstance(current, FunctionType)
        code = current.__code__
        yield (current.__qualname__, code.co_code, code.co_consts, code.co_names, code.co_varnames, code.co_argcount)
        yield (current.__defaults__, getattr(current, "__kernel_options__", None), hasattr(current, "__kernel_wide__"))
        for name, value in globals_of(current).items():
            if is_kernel(value):
                if value not in seen:
                    seen.add(value)
                    todo.append(value)
                yield (name, value.__module__, value.__qualname__)
            else:
                yield (name, _constant(value), *_attributes(value, code.co_names))


def _attributes(owner: object, names: tuple[str, ...], seen: tuple[object, ...] = ()) -> Iterator[object]:
    """Yield what a function may read through a module or a class: numba freezes these as constants, too."""
    if isinstance(owner, ModuleType | type) and owner not in seen:
        for name in names:
            if hasattr(owner, name):
                value = getattr(owner, name)
                yield (name, _constant(value), *_attributes(value, names, (*seen, owner)))


def _constant(value: Any) -> object:
    """Give a stand-in with a stable ``repr``; only numbers, tuples and arrays become machine code."""
    if isinstance(value, tuple):
        return tuple(_constant(item) for item in value)
    if hasattr(value, "tobytes") and not isinstance(value, type):
        return (str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, int | float | complex | str | bytes | None):
        return value
    return value.__name__ if isinstance(value, ModuleType) else type(value).__qualname__


@cache
def _toolchain() -> tuple[object, ...]:
    """Give the versions, the processor and the settings that decide the machine code."""
    from llvmlite import binding

    here = Path(__file__).parent
    return (
        sys.implementation.cache_tag,
        sys.version,
        version("numba"),
        version("llvmlite"),
        binding.get_process_triple(),
        host(),
        sorted((k, v) for k, v in os.environ.items() if k.startswith(("NUMBA_", "STABILITYKIT_COMPILER"))),
        [hashlib.sha256((here / name).read_bytes()).hexdigest() for name in _GENERATORS],
    )
