"""The one compiled pass over a turn: inputs, detectors, rules, machine, widest scope first.

The same source runs uncompiled. All memory comes in as blocks: the rows of the session, its
replica and its device, the value vector, the tables of the pack, and scratch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stabilitykit.compiled.header import (
    B_DEVICE,
    B_FAULT,
    B_MATCHED,
    B_REPLICA,
    C_FLAGS,
    C_SKIP,
    DETECTOR_FIELDS,
    F_COMPARE,
    F_DEVICE,
    F_DEVICE_LATE,
    F_DEVICE_OLD,
    F_MAY_DEVICE,
    F_MAY_REPLICA,
    F_REPLICA,
    F_REPLICA_LATE,
    F_REPLICA_OLD,
    F_REWRITTEN,
    F_TURN,
    G_COPY,
    G_COPY_SIZE,
    G_DETECTORS,
    G_INPUT,
    G_WORDS,
    INPUT_FIELDS,
    RULED,
    S_ACTIVE,
    S_BLOCK,
    S_BLOCK_SIZE,
    S_DET,
    S_DET_END,
    S_EXPIRING,
    S_EXPIRING_END,
    S_GUARDS,
    S_IN,
    S_IN_END,
    S_MACHINE,
    S_OUT,
    S_RULE_F8,
    S_RULE_U8,
    S_RULES,
    S_SAVED,
    S_WIDE,
    S_WIDE_END,
    SCOPE_HEADER,
)
from stabilitykit.compiled.inputs import content_hash, derive, foresee, is_given, mark_known, take_arrays, take_inputs
from stabilitykit.kernels import kernel
from stabilitykit.kernels.pointers import (
    as_u2,
    as_u4,
    as_u8,
    call_detector,
    offset_f4,
    offset_f8,
    offset_i4,
    offset_u2,
    offset_u4,
    offset_u8,
)
from stabilitykit.machine import step_machine
from stabilitykit.rules.kernel import step_rules
from stabilitykit.rules.tables import M_ON, M_STREAK, MEMORY_WORDS, R_HISTORY, R_WORDS, STREAK_WORDS

__all__ = ["run_pass"]

U0 = np.uint64(0)
NAN = float("nan")


@kernel
def run_detectors(
    first: int, last: int, skip: int, row: Any, vec: Any, x: Any, ti: Any, tf: Any,
    kernels: Any, arr: Any, ids: Any, n: Any,
) -> None:  # fmt: skip
    """Update the detectors first..last of the table; those in the skip mask only fall silent."""
    h = as_u4(row)
    w = as_u2(row)
    for d in range(first, last):
        p = ti[G_DETECTORS] + DETECTOR_FIELDS * d
        if (skip >> d) & 1 == 1:
            for k in range(ti[p + 8]):
                x[ti[p + 7] + k] = NAN
        else:
            call_detector(
                kernels, ti[p], x, offset_f8(row, ti[p + 1]), offset_u4(h, ti[p + 2]), offset_u2(w, ti[p + 3]),
                offset_f4(vec, ti[p + 4]), offset_f8(tf, ti[p + 5]), offset_i4(ti, ti[p + 6]), arr, ids, n,
            )  # fmt: skip


@kernel
def run_rules(hb: int, row: Any, x: Any, ti: Any, tf: Any, tu: Any, sc: Any, xg: Any, out: Any) -> int:
    """Step one scope's rules and machine; gives 1 when a rule's unknown just expired."""
    words = as_u8(row)
    u = offset_u8(words, ti[hb + S_RULE_U8])
    count = ti[hb + S_RULES + R_WORDS]
    mine = offset_u8(out, ti[hb + S_OUT])
    step_rules(hb + S_RULES, x, offset_f8(row, ti[hb + S_RULE_F8]), u, ti, tf, tu, sc, xg, mine)
    state = words[ti[hb + S_MACHINE]]
    mine[4 * count] = state | (state << np.uint64(8))
    if ti[hb + S_ACTIVE] == RULED:  # a wider scope without rules has no machine
        mine[4 * count] = np.uint64(step_machine(words, ti[hb + S_MACHINE], count, mine, ti, tu, hb + S_GUARDS))
    expired = U0
    for w in range(count):
        expired |= mine[3 * count + w]
    return 1 if expired != U0 else 0


@kernel
def show_memory(row: Any, ti: Any, out: Any) -> int:
    """Copy the session's streaks and histories out where a rule matches."""
    matched = U0
    count = ti[S_RULES + R_WORDS]
    for w in range(count):
        matched |= out[ti[S_OUT] + w]
    if matched == U0:
        return 0
    words = as_u8(row)
    to = ti[G_COPY]
    for w in range(count):
        at = ti[S_RULE_U8] + w * MEMORY_WORDS + M_STREAK
        for k in range(STREAK_WORDS):
            out[to + w * STREAK_WORDS + k] = words[at + k]
    to += count * STREAK_WORDS
    for k in range(ti[G_COPY_SIZE] - count * STREAK_WORDS):
        out[to + k] = words[ti[S_RULE_U8] + ti[S_RULES + R_HISTORY] + k]
    return B_MATCHED


@kernel
def recall_scope(hb: int, row: Any, ti: Any, out: Any) -> None:
    """Show the levels that a wider scope had at its last sample."""
    u = as_u8(row)
    count = ti[hb + S_RULES + R_WORDS]
    at = ti[hb + S_OUT]
    for w in range(count):
        out[at + w] = u[ti[hb + S_RULE_U8] + w * MEMORY_WORDS + M_ON]
    for w in range(count, 4 * count):
        out[at + w] = U0
    state = u[ti[hb + S_MACHINE]]
    out[at + 4 * count] = state | (state << np.uint64(8))


@kernel
def run_widened(
    hb: int, expired: int, row: Any, vec: Any, x: Any, ti: Any, tf: Any, kernels: Any, arr: Any, ids: Any, n: Any
) -> None:
    """Update the detectors of a wider scope that move with turns; an expired sample is unknown to them."""
    if ti[hb + S_WIDE] == ti[hb + S_WIDE_END]:
        return
    saved = ti[hb + S_SAVED] - ti[hb + S_BLOCK]
    if expired != 0:
        for k in range(ti[hb + S_BLOCK], ti[hb + S_BLOCK] + ti[hb + S_BLOCK_SIZE]):
            row[saved + k] = x[k]
        for q in range(ti[hb + S_EXPIRING], ti[hb + S_EXPIRING_END]):
            x[ti[q]] = NAN
    run_detectors(ti[hb + S_WIDE], ti[hb + S_WIDE_END], 0, row, vec, x, ti, tf, kernels, arr, ids, n)
    if expired != 0:
        for q in range(ti[hb + S_EXPIRING], ti[hb + S_EXPIRING_END]):
            x[ti[q]] = row[saved + ti[q]]


@kernel
def run_wide(
    scope: int, turn: int, forced: int, allowed: int, old: int, late: int, row: Any, vec: Any, x: Any, inp: Any,
    ti: Any, tf: Any, tu: Any, sc: Any, xg: Any, out: Any, kernels: Any, arr: Any, ids: Any, n: Any,
) -> int:  # fmt: skip
    """Bring one replica or device up to date; gives its bits of the result."""
    hb = scope * SCOPE_HEADER
    block = ti[hb + S_BLOCK]
    fault = 0
    sample = 1 if forced != 0 else 0
    if allowed != 0:
        sample = is_given(ti[hb + S_IN], ti[hb + S_IN_END], inp)
    for k in range(ti[hb + S_BLOCK_SIZE]):
        x[block + k] = row[ti[hb + S_SAVED] + k]
    if sample == 1:
        fault = take_inputs(hb, row, inp, x, ti, tf, out)
        mark_known(hb, row, x, ti, n)
        run_detectors(ti[hb + S_DET], ti[hb + S_DET_END], 0, row, vec, x, ti, tf, kernels, arr, ids, n)
    expired = late if sample == 1 else old
    if turn == 1:
        run_widened(hb, expired, row, vec, x, ti, tf, kernels, arr, ids, n)
    if sample == 1:
        fault |= run_rules(hb, row, x, ti, tf, tu, sc, xg, out)
    for k in range(ti[hb + S_BLOCK_SIZE]):
        row[ti[hb + S_SAVED] + k] = x[block + k]
    if sample == 0:
        recall_scope(hb, row, ti, out)
    if expired != 0:
        for q in range(ti[hb + S_EXPIRING], ti[hb + S_EXPIRING_END]):
            x[ti[q]] = NAN
    if sample == 0:
        return 0
    return (B_REPLICA if scope == 1 else B_DEVICE) | (B_FAULT if fault == 1 else 0)


@kernel
def run_session(
    skip: int, row: Any, vec: Any, x: Any, ti: Any, tf: Any, tu: Any, sc: Any, xg: Any, out: Any, kernels: Any,
    arr: Any, ids: Any, n: Any,
) -> int:  # fmt: skip
    """Bring the session up to date; gives its machine word and its bits of the result."""
    mark_known(0, row, x, ti, n)
    run_detectors(ti[S_DET], ti[S_DET_END], skip, row, vec, x, ti, tf, kernels, arr, ids, n)
    fault = run_rules(0, row, x, ti, tf, tu, sc, xg, out)
    shown = show_memory(row, ti, out)
    return int(out[ti[S_OUT] + 4 * ti[S_RULES + R_WORDS]]) | shown | (B_FAULT if fault == 1 else 0)


@kernel
def run_pass(
    ctl: Any, x: Any, inp: Any, ti: Any, tf: Any, tu: Any, sc: Any, xg: Any, out: Any, kernels: Any, arr: Any,
    ids: Any, n: Any, srow: Any, svec: Any, rrow: Any, rvec: Any, drow: Any, dvec: Any,
) -> int:  # fmt: skip
    """Evaluate one turn or one sample.

    Parameters
    ----------
    ctl
        The control words: flags, detectors to skip, revision.
    x, inp
        float64 values of the pack; scalar inputs as the host gave them.
    ti, tf, tu
        The tables of the pack.
    sc, xg, out
        Scratch, and the uint64 words that the Decision is made of.
    kernels, arr, ids, n
        Addresses of the detector kernels (or plain functions); array inputs and their lengths.
    srow, svec, rrow, rvec, drow, dvec
        Row and vector block of the session, its replica and its device.

    Returns
    -------
    int
        ``state | previous << 8 | entered << 16`` of the session (of nothing on an observe), and the ``B_`` bits.
        With ``F_COMPARE`` it is 1 when the content equals that of the stored turn, and nothing moves.
    """
    flags = ctl[C_FLAGS]
    turn = flags & F_TURN
    if turn == 1:
        seen = np.uint64(content_hash(ctl, inp, ti, arr, ids, n))
        stored = as_u8(srow)
        if flags & F_COMPARE != 0:
            return 1 if stored[0] == seen else 0
        stored[0] = seen
    for w in range(ti[G_WORDS] * 2):
        out[w] = U0
    fault = take_arrays(ti, arr, n, out)
    if turn == 1:  # before the wider scopes: their widened detectors read the turn's signals
        derive(ti, tf, inp, srow, flags & F_REWRITTEN)
        fault |= take_inputs(0, srow, inp, x, ti, tf, out)
    else:
        for k in range(ti[S_IN], ti[S_IN_END]):
            x[ti[ti[G_INPUT] + INPUT_FIELDS * k]] = NAN
    result = 0
    if ti[2 * SCOPE_HEADER + S_ACTIVE] != 0:
        foresee(flags, rrow, inp, x, ti, tf)
        result |= run_wide(
            2, turn, flags & F_DEVICE, flags & F_MAY_DEVICE, flags & F_DEVICE_OLD, flags & F_DEVICE_LATE,
            drow, dvec, x, inp, ti, tf, tu, sc, xg, out, kernels, arr, ids, n,
        )  # fmt: skip
    if ti[SCOPE_HEADER + S_ACTIVE] != 0:
        result |= run_wide(
            1, turn, flags & F_REPLICA, flags & F_MAY_REPLICA, flags & F_REPLICA_OLD, flags & F_REPLICA_LATE,
            rrow, rvec, x, inp, ti, tf, tu, sc, xg, out, kernels, arr, ids, n,
        )  # fmt: skip
    if turn == 1:
        result |= run_session(ctl[C_SKIP], srow, svec, x, ti, tf, tu, sc, xg, out, kernels, arr, ids, n)
    return result | (B_FAULT if fault == 1 else 0)
