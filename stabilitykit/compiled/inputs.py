"""The scalar and array inputs of a turn: their hash, their domains, what is derived from them.

NaN is unknown; a payload of its own tells *not given* from *invalid* before the domain check.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stabilitykit.compiled.header import (
    C_REVISION,
    DERIVED_FIELDS,
    F_MAY_REPLICA,
    F_REPLICA,
    F_REPLICA_LATE,
    F_REPLICA_OLD,
    G_ARRAYS,
    G_CONTENT,
    G_DERIVED,
    G_DOMAIN,
    G_INPUT,
    G_INPUTS,
    G_KINDS,
    G_WORDS,
    INPUT_FIELDS,
    K_FLOATS,
    K_INTEGERS,
    S_ACTIVE,
    S_BLOCK,
    S_DERIVED,
    S_DERIVED_END,
    S_IN,
    S_IN_END,
    S_KNOWN,
    S_PREVIOUS,
    S_SAVED,
    S_TIME,
    S_WIDE,
    S_WIDE_END,
    SCOPE_HEADER,
)
from stabilitykit.kernels import kernel
from stabilitykit.kernels.bits import float_bits
from stabilitykit.kernels.hit_ratio import hit_ratio
from stabilitykit.kernels.pointers import as_u8
from stabilitykit.turn import MISSING_BITS

U0 = np.uint64(0)
U1 = np.uint64(1)
NAN = float("nan")
LARGEST = 3.4028234663852886e38
KEPT_OF_SENT, KEPT_OF_BEFORE = 0.9, 0.5
"""A host's tokenizer and chat template differ by some percent from the server's; prompts with retrieved
text shrink by a third and more from turn to turn (servers that cut silently kept 3 to 50 %)."""
LONG = 8192
"""Longer arrays are not looked through: the detector that reads them does."""
SMALLEST_NORMAL = 2.2250738585072014e-308
MISMATCH_BITS = 0x7FF8_0000_4241_4421
"""Payload of a value of the wrong type: unknown, already reported."""
FOREVER = 1e300
_LOW62 = (1 << 62) - 1
_PRIME = 0x9E3779B97F4A7C1
_NEAR, _FAR, _RUN, _WEIGHT = 300.0, 3000.0, 5.0, 0.2


@kernel
def mix(h: int, bits: int) -> int:
    """Fold 64 bits into a running content hash of 62."""
    # The high half goes in twice: the product moves bits up only, and 62 of them stay.
    return (((h ^ bits ^ (bits >> 31)) * _PRIME) ^ (h >> 29)) & _LOW62


@kernel
def element_bits(is_integer: bool, values: Any, whole: Any, i: int) -> int:
    """Give the bits of one element of an array input."""
    if is_integer:
        return int(whole[i])
    return float_bits(np.float64(values[i]))


@kernel
def array_hash(h: int, is_integer: bool, values: Any, whole: Any, size: int) -> int:
    """Fold an array into a content hash: all of it, or 64 elements spread over one too long to look through."""
    if size > LONG:
        for j in range(64):
            h = mix(h, element_bits(is_integer, values, whole, j * (size // 64)))
        return h
    h1, h2, h3 = 1, 2, 3  # four lanes: a single one would wait for each product
    even = size - size % 4
    for i in range(0, even, 4):
        h = mix(h, element_bits(is_integer, values, whole, i))
        h1 = mix(h1, element_bits(is_integer, values, whole, i + 1))
        h2 = mix(h2, element_bits(is_integer, values, whole, i + 2))
        h3 = mix(h3, element_bits(is_integer, values, whole, i + 3))
    for i in range(even, size):
        h = mix(h, element_bits(is_integer, values, whole, i))
    return mix(mix(mix(h, h1), h2), h3)


@kernel
def content_hash(ctl: Any, inp: Any, ti: Any, arr: Any, ids: Any, n: Any) -> int:
    """Hash what the pack reads of a turn."""
    h = mix(1, int(ctl[C_REVISION]))
    for k in range(ti[G_CONTENT]):
        h = mix(h, float_bits(inp[k]))
    for k in range(ti[G_ARRAYS]):
        size = int(n[k])
        h = mix(h, size)
        if size > 0:
            h = array_hash(h, ti[ti[G_KINDS] + k] == K_INTEGERS, arr[k], ids[k], size)
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
            ratio = hit_ratio(inp[a], inp[b])
            if blank and has_a == 1 and has_b == 1 and ratio == ratio:
                inp[to] = ratio
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
                    inp[to] = 1.0 if inp[b] < KEPT_OF_SENT * inp[a] else 0.0
                elif before == before and rewritten == 0:
                    inp[to] = 1.0 if inp[b] < KEPT_OF_BEFORE * before else 0.0


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
def take_time(hb: int, inp: Any, x: Any, ti: Any) -> None:
    """Show one scope's detectors when this turn or sample was; a sample without time has the turn's."""
    at = ti[hb + S_TIME]
    if at >= 0:
        v = inp[at]
        if not (abs(v) < FOREVER):
            v = inp[ti[G_CONTENT]]
        x[ti[ti[G_INPUT] + INPUT_FIELDS * at]] = v if abs(v) < FOREVER else NAN


@kernel
def take_inputs(hb: int, row: Any, inp: Any, x: Any, ti: Any, tf: Any, out: Any) -> int:
    """Check one scope's inputs against their domains; gives 1 when a fault is to be reported."""
    fault = 0
    take_time(hb, inp, x, ti)
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
    hb, device = SCOPE_HEADER, 2 * SCOPE_HEADER
    if ti[hb + S_ACTIVE] == 0 or ti[device + S_WIDE] == ti[device + S_WIDE_END]:
        return  # no widened detector of the device would read them
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
