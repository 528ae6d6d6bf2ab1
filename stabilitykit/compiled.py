"""The one compiled pass over a turn: inputs, detectors, rules, machine, widest scope first.

The same source runs uncompiled. All memory comes in as blocks: the rows of the session, its
replica and its device, the value vector, the tables of the pack, and scratch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stabilitykit.kernels import kernel
from stabilitykit.kernels.bits import float_bits
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
from stabilitykit.machine import MACHINE_HEADER, step_machine
from stabilitykit.rules.kernel import step_rules
from stabilitykit.rules.tables import M_ON, MEMORY_WORDS, R_WORDS, RULE_HEADER
from stabilitykit.turn import MISSING_BITS

__all__ = ["ARGUMENTS", "run_pass"]

# Fields of one scope's part of the int32 header.
(
    S_ACTIVE, S_IN, S_IN_END, S_KNOWN, S_DET, S_DET_END, S_WIDE, S_WIDE_END, S_BLOCK, S_BLOCK_SIZE,
    S_SAVED, S_EXPIRING, S_EXPIRING_END, S_RULE_F8, S_RULE_U8, S_MACHINE, S_OUT, S_DERIVED, S_DERIVED_END,
    S_PREVIOUS,
) = range(20)  # fmt: skip
S_RULES = 20
S_GUARDS = S_RULES + RULE_HEADER
SCOPE_HEADER = S_GUARDS + MACHINE_HEADER
# Fields after the three scopes.
G_INPUT = 3 * SCOPE_HEADER
(G_INPUTS, G_WORDS, G_DOMAIN, G_DERIVED, G_DETECTORS, G_ARRAYS, G_KINDS) = range(G_INPUT + 1, G_INPUT + 8)
HEADER = G_INPUT + 8
RULED = 2
"""Value of S_ACTIVE where the scope has a machine; 1 where others only read it."""
K_FLOATS, K_LOGS, K_INTEGERS = 0, 1, 2
"""Kinds of arrays: floats, logarithms (minus infinity is a value), integers."""
INPUT_FIELDS, DERIVED_FIELDS, DETECTOR_FIELDS = 3, 5, 9
"""An input: slot, memory of its unit watch (or -1), is it reported. A derived signal: kind, target,
three operands. A detector: kernel, float64, uint32, uint16, vector, configuration and io offsets,
first output slot, number of outputs."""

# The control words (int64): what kind of call this is.
C_FLAGS, C_SKIP, C_REVISION = 0, 1, 2
CONTROL_WORDS = 3
F_TURN, F_MAY_REPLICA, F_MAY_DEVICE, F_REPLICA, F_DEVICE = 1, 2, 4, 8, 16
F_REPLICA_OLD, F_DEVICE_OLD, F_COMPARE, F_REWRITTEN = 32, 64, 128, 256
F_REPLICA_LATE, F_DEVICE_LATE = 512, 1024
"""OLD: the stored sample no longer counts. LATE: the one that this turn brings would not."""

# Bits of the result above the session's machine word.
B_FAULT, B_REPLICA, B_DEVICE, B_STALE = 1 << 17, 1 << 18, 1 << 19, 1 << 20

FIXED = ("i8", "f8", "f8", "i4", "f8", "u8", "i4", "f8", "u8", "i8", "pf4", "pi8", "i8")
"""Kinds of the blocks of ``run_pass`` that belong to a generation: ctl to n."""
ARGUMENTS = (*FIXED, "f8", "f4", "f8", "f4", "f8", "f4")
"""Kind of each block of ``run_pass``, in order."""

U0 = np.uint64(0)
U1 = np.uint64(1)
NAN = float("nan")
LARGEST = 3.4028234663852886e38
LONG = 8192
"""Longer arrays are not looked through: the detector that reads them does."""
SMALLEST_NORMAL = 2.2250738585072014e-308
MISMATCH_BITS = 0x7FF8_0000_4241_4421
"""Payload of a value of the wrong type: unknown, already reported."""
_LOW62 = (1 << 62) - 1
_PRIME = 0x9E3779B97F4A7C1
_NEAR, _FAR, _RUN, _WEIGHT = 300.0, 3000.0, 5.0, 0.2


@kernel
def mix(h: int, bits: int) -> int:
    """Fold 64 bits into a running content hash of 62."""
    # The high half goes in twice: the product moves bits up only, and 62 of them stay.
    return (((h ^ bits ^ (bits >> 31)) * _PRIME) ^ (h >> 29)) & _LOW62


@kernel
def content_hash(ctl: Any, inp: Any, ti: Any, arr: Any, ids: Any, n: Any) -> int:
    """Hash what the pack reads of a turn; long arrays by 64 elements spread over them."""
    h = mix(1, int(ctl[C_REVISION]))
    for k in range(ti[G_INPUTS]):
        h = mix(h, float_bits(inp[k]))
    for k in range(ti[G_ARRAYS]):
        size = int(n[k])
        h = mix(h, size)
        step = max(1, size // 64)
        i = 0
        while i < size:
            if ti[ti[G_KINDS] + k] != K_INTEGERS:
                h = mix(h, float_bits(np.float64(arr[k][i])))
            else:
                h = mix(h, int(ids[k][i]))
            i += step
    return h


@kernel
def is_given(first: int, last: int, inp: Any) -> int:
    """Tell whether any of these inputs was given, valid or not."""
    for k in range(first, last):
        if float_bits(inp[k]) != MISSING_BITS:
            return 1
    return 0


@kernel
def known(k: int, inp: Any, ti: Any, tf: Any) -> int:
    """Tell whether input k is there and inside its domain."""
    domain = ti[G_DOMAIN] + 2 * k
    return 1 if inp[k] >= tf[domain] and inp[k] <= tf[domain + 1] else 0


@kernel
def derive(ti: Any, tf: Any, inp: Any, row: Any, rewritten: int) -> None:
    """Fill in the session's derived signals where they are missing and derivable."""
    for q in range(ti[S_DERIVED], ti[S_DERIVED_END]):
        p = ti[G_DERIVED] + DERIVED_FIELDS * q
        to, a, b, c = ti[p + 1], ti[p + 2], ti[p + 3], ti[p + 4]
        blank = float_bits(inp[to]) == MISSING_BITS
        has_a = known(a, inp, ti, tf)
        has_b = known(b, inp, ti, tf)
        kind = ti[p]
        if kind == 0:  # kv_hit_ratio = cached / input
            if blank and has_a == 1 and has_b == 1 and inp[b] > 0.0 and inp[a] <= inp[b]:
                inp[to] = inp[a] / inp[b]
        elif kind == 1:  # session_tokens = input + output
            if blank and has_a == 1 and has_b == 1:
                inp[to] = inp[a] + inp[b]
        elif kind == 2:  # context_usage_ratio = (input + output) / window
            total = inp[a]
            if has_b == 1:
                total += inp[b]
            fine = has_b == 1 or float_bits(inp[b]) == MISSING_BITS
            if blank and has_a == 1 and fine and known(c, inp, ti, tf) == 1 and inp[c] > 0.0:
                inp[to] = total / inp[c]
        else:  # is_history_truncated from sent (a), input (b) and the previous input
            before = row[ti[S_PREVIOUS]]
            row[ti[S_PREVIOUS]] = inp[b] if has_b == 1 else NAN
            if blank and has_b == 1:
                if has_a == 1:
                    inp[to] = 1.0 if inp[b] < inp[a] else 0.0
                elif before == before and rewritten == 0:
                    inp[to] = 1.0 if inp[b] < before else 0.0


@kernel
def watch_unit(v: float, row: Any, at: int) -> int:
    """Watch one latency for a sustained jump of about a thousand; gives 1 when it is sustained."""
    base = row[at]
    if base != base:
        if v > 0.0:
            row[at] = v
        return 0
    if v <= 0.0:
        row[at + 1] = 0.0
        return 0
    ratio = v / base
    if (ratio >= _NEAR and ratio <= _FAR) or (ratio * _NEAR <= 1.0 and ratio * _FAR >= 1.0):
        row[at + 1] += 1.0
        if row[at + 1] < _RUN:
            return 0
        row[at] = v
        row[at + 1] = 0.0
        return 1
    row[at + 1] = 0.0
    row[at] = base + _WEIGHT * (v - base)
    return 0


@kernel
def take_inputs(hb: int, row: Any, inp: Any, x: Any, ti: Any, tf: Any, out: Any) -> int:
    """Check one scope's inputs against their domains; gives 1 when a fault is to be reported."""
    fault = 0
    for k in range(ti[hb + S_IN], ti[hb + S_IN_END]):
        v = inp[k]
        p = ti[G_INPUT] + INPUT_FIELDS * k
        bit = U1 << np.uint64(k & 63)
        if known(k, inp, ti, tf) == 1:
            if abs(v) < SMALLEST_NORMAL:
                v = 0.0
            x[ti[p]] = v
            if ti[p + 1] >= 0 and watch_unit(v, row, ti[p + 1]) == 1:
                out[ti[G_WORDS] + (k >> 6)] |= bit
                fault = 1
        else:
            x[ti[p]] = NAN
            bits = float_bits(v)
            if ti[p + 2] == 1 and bits != MISSING_BITS and bits != MISMATCH_BITS:
                out[k >> 6] |= bit
                fault = 1
    return fault


@kernel
def take_arrays(ti: Any, arr: Any, n: Any, out: Any) -> int:
    """Make arrays with an element that is no number absent; gives 1 when a fault is to be reported."""
    fault = 0
    for k in range(ti[G_ARRAYS]):
        kind = ti[ti[G_KINDS] + k]
        if kind == K_INTEGERS or n[k] > LONG:
            continue
        bad = 0
        for i in range(n[k]):
            v = arr[k][i]
            if not (abs(v) <= LARGEST) and (kind == K_FLOATS or v != v or v > 0.0):
                bad = 1
        if bad == 1:
            n[k] = 0
            at = ti[G_INPUTS] + k
            out[at >> 6] |= U1 << np.uint64(at & 63)
            fault = 1
    return fault


@kernel
def mark_known(hb: int, row: Any, x: Any, ti: Any, n: Any) -> None:
    """Note in a row which signals are known to it now, and which ever were."""
    words = as_u8(row)
    ever = ti[hb + S_KNOWN]
    now = ever + ti[G_WORDS]
    for w in range(ti[G_WORDS]):
        words[now + w] = U0
    for k in range(ti[G_INPUTS]):
        v = x[ti[ti[G_INPUT] + INPUT_FIELDS * k]]
        words[now + (k >> 6)] |= np.uint64(v == v) << np.uint64(k & 63)
    for k in range(ti[G_ARRAYS]):
        at = ti[G_INPUTS] + k
        words[now + (at >> 6)] |= np.uint64(n[k] > 0) << np.uint64(at & 63)
    for w in range(ti[G_WORDS]):
        words[ever + w] |= words[now + w]


@kernel
def foresee(flags: int, row: Any, inp: Any, x: Any, ti: Any, tf: Any) -> None:
    """Show the replica's signals as the session will see them; moves nothing."""
    hb = SCOPE_HEADER
    sample = flags & F_REPLICA
    if flags & F_MAY_REPLICA != 0:
        sample = is_given(ti[hb + S_IN], ti[hb + S_IN_END], inp)
    old = flags & F_REPLICA_OLD
    if sample != 0:
        old = flags & F_REPLICA_LATE
    for k in range(ti[hb + S_IN], ti[hb + S_IN_END]):
        slot = ti[ti[G_INPUT] + INPUT_FIELDS * k]
        v = row[ti[hb + S_SAVED] + slot - ti[hb + S_BLOCK]]
        if sample != 0:
            v = inp[k] if known(k, inp, ti, tf) == 1 else NAN
        x[slot] = v if old == 0 else NAN


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
def run_rules(
    hb: int, row: Any, x: Any, ti: Any, tf: Any, tu: Any, sc: Any, xg: Any, out: Any
) -> int:
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
def run_wide(
    scope: int, turn: int, forced: int, allowed: int, old: int, late: int, row: Any, vec: Any, x: Any, inp: Any, ti: Any,
    tf: Any, tu: Any, sc: Any, xg: Any, out: Any, kernels: Any, arr: Any, ids: Any, n: Any,
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
    if turn == 1:
        run_detectors(ti[hb + S_WIDE], ti[hb + S_WIDE_END], 0, row, vec, x, ti, tf, kernels, arr, ids, n)
    if sample == 1:
        fault |= run_rules(hb, row, x, ti, tf, tu, sc, xg, out)
    for k in range(ti[hb + S_BLOCK_SIZE]):
        row[ti[hb + S_SAVED] + k] = x[block + k]
    if sample == 0:
        recall_scope(hb, row, ti, out)
    if (sample == 0 and old != 0) or (sample == 1 and late != 0):
        for q in range(ti[hb + S_EXPIRING], ti[hb + S_EXPIRING_END]):
            x[ti[q]] = NAN
    if sample == 0:
        return 0
    return (B_REPLICA if scope == 1 else B_DEVICE) | (B_FAULT if fault == 1 else 0)


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
    kernels
        Addresses of the detector kernels (plain functions when uncompiled).
    arr, ids, n
        Array inputs and their lengths.
    srow, svec, rrow, rvec, drow, dvec
        Row and vector block of the session, its replica and its device.

    Returns
    -------
    int
        ``state | previous << 8 | entered << 16`` of the session (of nothing on an observe), with
        ``B_FAULT``, ``B_REPLICA`` (a replica sample was taken) and ``B_DEVICE``. With ``F_COMPARE``
        it is 1 when the content equals that of the stored turn, and nothing moves.
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
        if ti[2 * SCOPE_HEADER + S_WIDE_END] > ti[2 * SCOPE_HEADER + S_WIDE] and ti[SCOPE_HEADER + S_ACTIVE] != 0:
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
    if turn == 0:
        return result | (B_FAULT if fault == 1 else 0)
    mark_known(0, srow, x, ti, n)
    run_detectors(ti[S_DET], ti[S_DET_END], ctl[C_SKIP], srow, svec, x, ti, tf, kernels, arr, ids, n)
    fault |= run_rules(0, srow, x, ti, tf, tu, sc, xg, out)
    state = np.int64(out[ti[S_OUT] + 4 * ti[S_RULES + R_WORDS]])
    return result | state | (B_FAULT if fault == 1 else 0)
