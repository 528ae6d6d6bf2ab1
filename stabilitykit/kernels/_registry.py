"""The ``@kernel`` mark: remembers a function, changes nothing, imports no numba.

``@kernel(fastmath={"contract", "reassoc"})`` is for one thing only: loops that sum products in
float32 or float64 and whose result is compared with a tolerance. The options are stored on the
function as ``fn.__kernel_options__`` (``{"fastmath": {"contract": True, "reassoc": True}}``, keys
sorted); ``compile`` lays them over its own when it makes the twin of that very function, and
``fingerprint`` hashes them. They do not spread to the functions that it calls or that call it.

``wide=True`` (``fn.__kernel_wide__``) lets one such loop use 512-bit vectors and keeps it out of line.
Compilers avoid them because older processors then lower their clock for a while: right for loops
over a whole vocabulary, wrong for anything that every turn runs.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import TypeVar, overload

F = TypeVar("F", bound=Callable[..., object])

KERNELS: dict[str, Callable[..., object]] = {}
"""Every marked function by ``module.name``."""

_ALLOWED = frozenset({"contract", "reassoc"})


@overload
def kernel(fn: F) -> F: ...
@overload
def kernel(*, fastmath: Set[str], wide: bool = False) -> Callable[[F], F]: ...
def kernel(fn: F | None = None, *, fastmath: Set[str] = frozenset(), wide: bool = False) -> F | Callable[[F], F]:
    """Mark a function as compilable; it stays the plain Python function that it is."""
    if not fastmath <= _ALLOWED:
        raise ValueError(f"only {sorted(_ALLOWED)} keep NaN and infinity as they are")

    def mark(fn: F) -> F:
        if fn.__code__.co_freevars:
            names = ", ".join(fn.__code__.co_freevars)
            raise TypeError(f"{fn.__qualname__}: a kernel reads no variables of an enclosing function ({names})")
        KERNELS[f"{fn.__module__}.{fn.__qualname__}"] = fn
        if fastmath:
            fn.__kernel_options__ = {"fastmath": dict.fromkeys(sorted(fastmath), True)}  # type: ignore[attr-defined]
        if wide:
            fn.__kernel_wide__ = True  # type: ignore[attr-defined]
        return fn

    return mark(fn) if fn is not None else mark
