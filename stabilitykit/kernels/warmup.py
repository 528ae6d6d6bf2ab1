"""Getting a pass and its detectors compiled, all at once, before the first turn.

Compiling happens on the calling thread and under one lock: a second thread waits, and so does a
fork, whose child then finds every lock free and all code in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from stabilitykit.kernels.compile import compile_detector, compile_entry, is_available
from stabilitykit.kernels.report import report

__all__ = ["Warm", "warm_up"]


@attrs.frozen
class Warm:
    """A compiled pass.

    Parameters
    ----------
    entry
        Takes the address of the int64 array of block addresses, gives the int of the pass.
    addresses
        For each detector, what belongs into the address table of ``call_detector``. They stay
        valid until the process ends.
    """

    entry: Callable[[int], int]
    addresses: tuple[int, ...]


def warm_up(fn: Callable[..., Any], kinds: tuple[str, ...], detectors: Sequence[Callable[..., Any]]) -> Warm | None:
    """Compile a pass and its detectors, or load them from the cache.

    Parameters
    ----------
    fn, kinds
        The pass, as for ``compile_entry``.
    detectors
        Detector kernels, in the order of the address table; one may occur twice.

    Returns
    -------
    Warm or None
        None when there is no working compiler: the plain functions are the engine then. A compiler that is
        there and fails is reported once, as a warning.
    """
    if not is_available():
        return None
    try:
        return Warm(compile_entry(fn, kinds), tuple(compile_detector(kernel).address for kernel in detectors))
    except Exception as problem:  # a compiler fails in its own ways, and none of them may stop a turn
        report("compile_failed", problem, warn=True)
        return None
