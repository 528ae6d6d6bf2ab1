"""Many turns in one call: a loop around the compiled pass, over rows that lie side by side."""

from __future__ import annotations

from typing import Any

from stabilitykit.compiled.header import (
    B_DEVICE,
    B_REPLICA,
    C_FLAGS,
    C_REVISION,
    C_SKIP,
    F_DEVICE_LATE,
    F_DEVICE_OLD,
    F_MAY_DEVICE,
    F_MAY_REPLICA,
    F_REPLICA_LATE,
    F_REPLICA_OLD,
    F_TURN,
    FIXED,
)
from stabilitykit.compiled.run import run_pass
from stabilitykit.kernels import kernel
from stabilitykit.kernels.pointers import as_u8, offset_f8

__all__ = ["ARGUMENTS", "SIZES", "run_batch"]

ARGUMENTS = (
    *FIXED, "i8", "f8", "f4", "f8", "f4", "f8", "f4", "f8", "f8", "i8", "f8", "f8", "i4", "u8", "i8", "f8",
)  # fmt: skip
"""Kind of each block of ``run_batch``, in order."""

(N_TURNS, N_INPUTS, N_PICK, N_OUT, N_LIVE, N_SESSION, N_REPLICA, N_DEVICE) = range(8)
SIZES = 8
"""Sizes: turns, inputs, picked words, words of out, values shown, and float64 elements of each scope's row."""


@kernel
def place_sample(at: float, now: float, ttl: float, seen: Any, k: int, may: int, late: int, old: int) -> int:
    """Say what a turn may do to its replica or device number k, as ``observing.Scopes.place`` does.

    An unknown time is NaN, so that no comparison with it holds.
    """
    flags = 0
    sampled, taken = seen[3 * k], seen[3 * k + 1]
    if at != at:
        if seen[3 * k + 2] == 0.0:
            flags = may
    elif sampled != sampled or at > sampled:
        flags = may
        if now - at > ttl:
            flags = may | late
    if now - taken > ttl:
        flags |= old
    return flags


@kernel
def note_sample(at: float, now: float, seen: Any, k: int) -> None:
    """Note when replica or device number k was sampled."""
    seen[3 * k + 1] = now if at != at else at
    if at == at:
        seen[3 * k] = at
        seen[3 * k + 2] = 1.0


@kernel
def run_batch(
    ctl: Any, x: Any, inp: Any, ti: Any, tf: Any, tu: Any, sc: Any, xg: Any, out: Any, kernels: Any, arr: Any,
    ids: Any, n: Any, sizes: Any, srows: Any, svec: Any, rrows: Any, rvec: Any, drows: Any, dvec: Any,
    rseen: Any, dseen: Any, where: Any, times: Any, data: Any, pick: Any, picked: Any, codes: Any, final: Any,
) -> int:  # fmt: skip
    """Evaluate turns one after the other.

    Parameters
    ----------
    ctl ... n
        As for ``run_pass``.
    sizes
        See ``SIZES``.
    srows, rrows, drows
        Rows of all sessions, replicas and devices, side by side.
    rseen, dseen
        For each replica and device: ``sampled_s`` and ``taken_s`` (NaN: none), ``is_timed``.
    where
        For each turn: its session, replica and device, and -1 or the session whose last turn it is.
    times
        sample_ttl first; then for each turn its time and those of its replica and device signals.
    data
        Inputs, turn by turn.
    pick, picked
        Which words of ``out`` are kept, and where.
    codes
        Result of each pass.
    final
        For each session what ``out`` and ``x`` held after its last turn.
    """
    for i in range(sizes[N_TURNS]):
        s, r, d = where[4 * i], where[4 * i + 1], where[4 * i + 2]
        now, rat, dat = times[3 * i + 1], times[3 * i + 2], times[3 * i + 3]
        ctl[C_FLAGS] = (
            F_TURN
            | place_sample(rat, now, times[0], rseen, r, F_MAY_REPLICA, F_REPLICA_LATE, F_REPLICA_OLD)
            | place_sample(dat, now, times[0], dseen, d, F_MAY_DEVICE, F_DEVICE_LATE, F_DEVICE_OLD)
        )
        ctl[C_SKIP] = 0
        ctl[C_REVISION] = 0
        for k in range(sizes[N_INPUTS]):
            inp[k] = data[i * sizes[N_INPUTS] + k]
        code = run_pass(
            ctl, x, inp, ti, tf, tu, sc, xg, out, kernels, arr, ids, n,
            offset_f8(srows, s * sizes[N_SESSION]), svec, offset_f8(rrows, r * sizes[N_REPLICA]), rvec,
            offset_f8(drows, d * sizes[N_DEVICE]), dvec,
        )  # fmt: skip
        codes[i] = code
        for q in range(sizes[N_PICK]):
            picked[i * sizes[N_PICK] + q] = out[pick[q]]
        if code & B_REPLICA != 0:
            note_sample(rat, now, rseen, r)
        if code & B_DEVICE != 0:
            note_sample(dat, now, dseen, d)
        if where[4 * i + 3] >= 0:
            keep_final(sizes, x, out, final, where[4 * i + 3])
    return 0


@kernel
def keep_final(sizes: Any, x: Any, out: Any, final: Any, s: int) -> None:
    """Keep what the last decision of session s is made of."""
    at = s * (sizes[N_OUT] + sizes[N_LIVE])
    words = as_u8(final)
    for k in range(sizes[N_OUT]):
        words[at + k] = out[k]
    for k in range(sizes[N_LIVE]):
        final[at + sizes[N_OUT] + k] = x[k]
