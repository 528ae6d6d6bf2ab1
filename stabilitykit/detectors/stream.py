"""One detector over the events of many sessions, a block of them a call: for feeds that outrun a call an event.

An engine decides turn by turn, with rules, states and reasons. Where a replica emits a hundred thousand readings a
second and only the detector's outputs are wanted, the price is the call, not the detector: here one compiled call
walks a whole block, each event with its own session's memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stabilitykit.detectors.trace import settings_of
from stabilitykit.errors import UsageError
from stabilitykit.kernels import kernel
from stabilitykit.kernels.compile import is_available
from stabilitykit.kernels.pointers import Block, call_detector, offset_f4, offset_f8, offset_u2, offset_u4
from stabilitykit.kernels.warmup import warm_up
from stabilitykit.signals import CATALOGUE, DetectorSpec

__all__ = ["Stream"]

KINDS = ("i8", "i8", "i4", "f8", "f8", "u4", "u2", "f4", "f8", "i4", "pf4", "pi8", "i8")
EVENTS, COLUMNS, F8, U4, U2, VEC = range(6)
"""Places in ctl: events, columns of the table, elements of each block of a session's memory."""
SMALLEST = 64


@kernel
def run_stream(
    kernels: Any, ctl: Block, where: Block, table: Block, f: Block, h: Block, w: Block, v: Block,
    c: Block, io: Block, arr: Any, ids: Any, lengths: Block,
) -> int:  # fmt: skip
    """Update the detector of session ``where[k]`` with row k of the table, which takes its outputs, too; gives 0."""
    columns, f8, u4, u2, vec = int(ctl[COLUMNS]), int(ctl[F8]), int(ctl[U4]), int(ctl[U2]), int(ctl[VEC])
    for k in range(int(ctl[EVENTS])):
        s = int(where[k])
        call_detector(
            kernels, 0, offset_f8(table, k * columns), offset_f8(f, s * f8), offset_u4(h, s * u4),
            offset_u2(w, s * u2), offset_f4(v, s * vec), c, io, arr, ids, lengths,
        )  # fmt: skip
    return 0


class Stream:
    """The memories of one detector for many sessions.

    Parameters
    ----------
    spec
        A detector with one scalar input.
    settings
        Settings that differ from their defaults.

    Raises
    ------
    UsageError
        The detector has another kind of input.

    Examples
    --------
    Two sessions, events as they come; only the second one falls:

    >>> from stabilitykit.detectors import DETECTORS
    >>> from stabilitykit.detectors.stream import Stream
    >>> stream = Stream(DETECTORS["decay_pattern"], {"window": 4})
    >>> rates = [60, 60, 61, 54, 60, 48, 59, 42, 60, 37, 61, 32]
    >>> stream.feed([0, 1] * 6, rates)["is_ramping"][-2:].tolist()
    [0.0, 1.0]
    """

    def __init__(self, spec: DetectorSpec, settings: Mapping[str, Any] | None = None) -> None:
        if len(spec.inputs) != 1 or any(s in CATALOGUE and CATALOGUE[s].dtype for s in spec.inputs.values()):
            raise UsageError(f"{spec.type} has another input than one number")
        full = settings_of(spec, settings)
        self._layout = spec.layout(full)
        self._outputs = tuple(o.name for o in spec.outputs)
        self._sizes = (self._layout.f8, self._layout.u4, self._layout.u2, self._layout.vec)
        self._memory = tuple(np.zeros(0, kind) for kind in (np.float64, np.uint32, np.uint16, np.float32))
        self._config = np.array([*spec.config(full), 0.0])
        self._io = np.arange(2, dtype=np.int32)
        self._no_arrays = np.zeros(2, np.int64)
        self._count = 0
        warm = warm_up(run_stream, KINDS, (spec.kernel,)) if is_available() else None
        self._entry = warm.entry if warm else None
        self._kernels: Any = np.array(warm.addresses, np.int64) if warm else (spec.kernel,)

    def feed(self, sessions: ArrayLike, values: ArrayLike) -> dict[str, NDArray[np.float64]]:
        """Take a block of events, in their order.

        Parameters
        ----------
        sessions
            int[n]: number of the session, from 0; memory grows with the greatest.
        values
            float[n]: NaN and infinite are unknown.

        Returns
        -------
        dict
            float64[n] by output, NaN where unknown.

        Raises
        ------
        UsageError
            Arrays of different lengths, a negative number; nothing has changed.
        """
        where = np.ascontiguousarray(sessions, np.int32)
        taken = np.asarray(values, np.float64)
        if where.ndim != 1 or where.shape != taken.shape:
            raise UsageError("sessions and values are two rows of the same length")
        if len(where) and where.min() < 0:
            raise UsageError("sessions are numbered from 0")
        self._make_room(int(where.max()) + 1 if len(where) else 0)
        table = np.empty((len(where), 1 + len(self._outputs)))
        table[:, 0] = taken
        table[np.isinf(taken), 0] = np.nan
        ctl = np.array([*table.shape, *self._sizes], np.int64)
        rest = (self._config, self._io, self._no_arrays, self._no_arrays, self._no_arrays)
        blocks = (ctl, where, table.reshape(-1), *self._memory, *rest)
        if self._entry is None:
            run_stream(self._kernels, *blocks)
        else:
            addresses = np.array([b.ctypes.data for b in (self._kernels, *blocks)], np.int64)
            self._entry(addresses.ctypes.data)
        return {name: table[:, k] for k, name in enumerate(self._outputs, start=1)}

    def _make_room(self, sessions: int) -> None:
        if sessions <= self._count:
            return
        count = max(sessions, 2 * self._count, SMALLEST)
        grown = tuple(np.zeros(count * size, b.dtype) for b, size in zip(self._memory, self._sizes, strict=True))
        for new, old in zip(grown, self._memory, strict=True):
            new[: len(old)] = old
        if self._layout.f8_init:
            grown[0].reshape(count, -1)[self._count :] = self._layout.f8_init
        self._memory, self._count = grown, count
