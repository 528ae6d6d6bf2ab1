"""One step of one scope's rules, over the tables of ``rules.tables``.

Values are float64 with NaN for unknown; verdicts are 0 false, 1 unknown, 2 true, so that
``and`` is the least and ``or`` the greatest; rule memory is bit-sliced, 64 rules a word.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stabilitykit.kernels import kernel
from stabilitykit.kernels.bits import popcount64
from stabilitykit.rules.tables import (
    CONSTANT_WORDS,
    K_COOL,
    K_COUNT,
    K_FIRE,
    K_FOR,
    K_HOLD,
    K_KEEP,
    K_LIMIT,
    K_REAL,
    M_BLIND,
    M_COOL,
    M_EPISODE,
    M_EXPIRED,
    M_KEEP,
    M_ON,
    M_STREAK,
    MEMORY_WORDS,
    R_BOUND,
    R_CONST,
    R_COUNT,
    R_COUNT_OF,
    R_HISTORY,
    R_IDX,
    R_LEVEL,
    R_PERM,
    R_REF,
    R_REF_OF,
    R_ROW,
    R_ROW_OF,
    R_SIGN,
    R_SLOT,
    R_SLOT_OF,
    R_STRATA,
    R_TERM_OF,
    R_TERM_WORDS,
    R_TERMS,
    R_WORD_OF,
    R_WORDS,
)

__all__ = ["finite", "step_rules"]

U0 = np.uint64(0)
U1 = np.uint64(1)
U63 = np.uint64(63)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
SMALLEST_NORMAL = 2.2250738585072014e-308
LARGEST = 1.7976931348623157e308
NAN = float("nan")
INF = float("inf")


@kernel
def finite(v: float) -> float:
    """Give v, 0.0 for a subnormal or a negative zero, NaN for an infinite value."""
    a = abs(v)
    if a > LARGEST:
        return NAN
    if a < SMALLEST_NORMAL:
        return 0.0
    return v


@kernel
def arithmetic(op: int, a: float, b: float) -> float:
    """Compute opcodes 0..7: + - * / min max abs cmp3; unknown in, unknown out."""
    if op == 7:
        if a != a or b != b:
            return NAN
        if a > b:
            return 1.0
        return -1.0 if a < b else 0.0
    if op == 6:
        return abs(a)
    if op >= 4:
        if a != a or b != b:
            return NAN
        if (b < a) == (op == 4):
            return b
        return a
    if op == 0:
        return finite(a + b)
    if op == 1:
        return finite(a - b)
    if op == 2:
        return finite(a * b)
    if b == 0.0 or b != b:
        return NAN
    return finite(a / b)


@kernel
def window(op: int, n: int, v: float, f: Any, at: int) -> float:
    """Shift v into a window of n values and give its mean (10), greatest (11) or least (12)."""
    known = 0
    total = 0.0
    low = INF
    high = -INF
    for k in range(n):
        w = v
        if k < n - 1:
            w = f[at + k + 1]
        f[at + k] = w
        if w == w:
            known += 1
            total += w
            low = min(low, w)
            high = max(high, w)
    if v != v or 2 * known < n:
        return NAN
    if op == 10:
        return finite(total / known)
    return high if op == 11 else low


@kernel
def count_true(n: int, v: float, u: Any, at: int) -> float:
    """Shift a verdict (1, 0 or NaN) into a history of n and count how often it was true."""
    true = u[at] << U1
    unknown = u[at + 1] << U1
    if v != v:
        unknown |= U1
    elif v > 0.5:
        true |= U1
    u[at] = true
    u[at + 1] = unknown
    mask = ALL >> np.uint64(64 - n)
    if v != v or 2 * popcount64(unknown & mask) > n:
        return NAN
    return float(popcount64(true & mask))


@kernel
def run_terms(first: int, last: int, x: Any, f: Any, u: Any, ti: Any, terms: int, term_words: int) -> None:
    """Run the term program of one stratum."""
    for q in range(first, last):
        p = terms + 6 * q
        op = ti[p]
        a = x[ti[p + 2]]
        m = ti[p + 4]
        if op <= 7:
            r = arithmetic(op, a, x[ti[p + 3]])
        elif op == 8:
            r = f[m]
            f[m] = a
        elif op == 9:
            r = finite(a - f[m])
            f[m] = a
        elif op == 13:
            r = count_true(ti[p + 5], a, u, term_words + m)
        else:
            r = window(op, ti[p + 5], a, f, m)
        x[ti[p + 1]] = r


@kernel
def run_atoms(
    s0: int, s1: int, x: Any, ti: Any, tf: Any, sc: Any, xg: Any, slots: int, idx: int, sign: int, bound: int
) -> None:
    """Evaluate all clauses of one stratum: the least verdict of the atoms of each."""
    for k in range(s0, s1 - 1):
        b = ti[slots + k]
        n = ti[slots + k + 1] - b
        for j in range(n):
            xg[j] = x[ti[idx + b + j]] * tf[sign + b + j]
        if k == s0:
            for j in range(n):
                c = tf[bound + b + j]
                sc[j] = np.int32(xg[j] > c) + np.int32(not (xg[j] <= c))
        else:
            for j in range(n):
                c = tf[bound + b + j]
                sc[j] = min(sc[j], np.int32(xg[j] > c) + np.int32(not (xg[j] <= c)))


@kernel
def gather_rules(r0: int, r1: int, ti: Any, sc: Any, rows: int, perm: int, level: int) -> int:
    """Combine clauses into rules: the greatest verdict of the clauses of each; gives the number of rules."""
    if r1 - r0 < 2:
        return 0
    count = ti[rows + r0 + 1] - ti[rows + r0]
    for k in range(r0, r1 - 1):
        b = ti[rows + k]
        n = ti[rows + k + 1] - b
        if k == r0:
            for j in range(n):
                sc[level + j] = sc[ti[perm + b + j]]
        else:
            for j in range(n):
                sc[level + j] = max(sc[level + j], sc[ti[perm + b + j]])
    return count


@kernel
def step_blind(unknown: Any, u: Any, m: int, tu: Any, c: int) -> Any:
    """Count blind turns; gives the rules that hold (frozen), and marks those that just expired."""
    carry = unknown
    for k in range(8):
        t = u[m + M_BLIND + k]
        u[m + M_BLIND + k] = t ^ carry
        carry &= t
    above = U0
    equal = ALL
    for i in range(8):
        k = 7 - i
        t = (u[m + M_BLIND + k] | carry) & unknown
        u[m + M_BLIND + k] = t
        limit = tu[c + K_LIMIT + k]
        above |= equal & t & ~limit
        equal &= ~(t ^ limit)
    above |= carry
    u[m + M_EXPIRED] = (u[m + M_EXPIRED] & unknown) | ((above & unknown & tu[c + K_HOLD]) & ALL)
    return unknown & tu[c + K_HOLD] & ~above


@kernel
def step_streak(true: Any, frozen: Any, u: Any, m: int, tu: Any, c: int) -> Any:
    """Count consecutive true turns; gives the rules whose streak has reached `for`."""
    carry = true
    for k in range(8):
        t = u[m + M_STREAK + k]
        u[m + M_STREAK + k] = t ^ carry
        carry &= t
    keep = true | frozen
    above = U0
    equal = ALL
    for i in range(8):
        k = 7 - i
        t = (u[m + M_STREAK + k] | carry) & keep
        u[m + M_STREAK + k] = t
        need = tu[c + K_FOR + k]
        above |= equal & t & ~need
        equal &= ~(t ^ need)
    return (above | equal) & ~tu[c + K_COUNT]


@kernel
def step_counts(true: Any, frozen: Any, u: Any, ti: Any, first: int, last: int, table: int, history: int) -> Any:
    """Shift the histories of `count` rules; gives those that are met."""
    met = U0
    for q in range(first, last):
        p = table + 3 * q
        bit = np.uint64(ti[p])
        h = u[history + q]
        if (frozen >> bit) & U1 == U0:
            h = (h << U1) | ((true >> bit) & U1)
            u[history + q] = h
        if popcount64(h & (ALL >> np.uint64(64 - ti[p + 2]))) >= ti[p + 1]:
            met |= U1 << bit
    return met


@kernel
def step_level(met: Any, true: Any, frozen: Any, u: Any, m: int, tu: Any, c: int) -> Any:
    """Move `on` and the keep counters; gives the matched rules."""
    on = u[m + M_ON]
    rise = met | (on & true)
    left = U0
    for k in range(8):
        left |= u[m + M_KEEP + k]
    kept = ~rise & on & left
    stay = frozen | kept
    load = rise & ~frozen
    borrow = kept & ~frozen
    for k in range(8):
        t = u[m + M_KEEP + k]
        d = t ^ borrow
        borrow &= ~t
        u[m + M_KEEP + k] = (d & stay & ~load) | (load & tu[c + K_KEEP + k])
    now = ((frozen & on) | (~frozen & (rise | kept))) & tu[c + K_REAL]
    u[m + M_ON] = now
    return now


@kernel
def step_fire(now: Any, frozen: Any, u: Any, m: int, tu: Any, c: int) -> Any:
    """Move the cool-downs and episodes; gives the rules that fire."""
    borrow = U0
    for k in range(8):
        borrow |= u[m + M_COOL + k]
    cooling = U0
    for k in range(8):
        t = u[m + M_COOL + k]
        d = t ^ borrow
        borrow &= ~t
        cooling |= d
        u[m + M_COOL + k] = d
    episode = u[m + M_EPISODE] & now
    fire = now & ~episode & ~frozen & ~cooling
    u[m + M_EPISODE] = episode | fire
    for k in range(8):
        u[m + M_COOL + k] |= fire & tu[c + K_COOL + k]
    return fire


@kernel
def step_word(w: int, n: int, at: int, x: Any, u: Any, ti: Any, tu: Any, sc: Any, out: Any, hb: int) -> None:
    """Step the 64 rules of word w, whose verdicts stand at sc[at : at + n]."""
    true = U0
    unknown = U0
    for j in range(n):
        v = np.uint64(sc[at + j])
        true |= (v >> U1) << np.uint64(j)
        unknown |= (v & U1) << np.uint64(j)
    raw = true
    m = w * MEMORY_WORDS
    c = ti[hb + R_CONST] + w * CONSTANT_WORDS
    words = ti[hb + R_WORDS]
    expired = u[m + M_EXPIRED]
    true |= unknown & tu[c + K_FIRE]
    frozen = step_blind(unknown, u, m, tu, c)
    met = step_streak(true, frozen, u, m, tu, c)
    if tu[c + K_COUNT] != U0:
        table = ti[hb + R_COUNT_OF] + w
        met |= step_counts(true, frozen, u, ti, ti[table], ti[table + 1], ti[hb + R_COUNT], ti[hb + R_HISTORY])
    now = step_level(met, true, frozen, u, m, tu, c)
    out[w] = now
    out[words + w] = unknown
    out[2 * words + w] = step_fire(now, frozen, u, m, tu, c)
    out[3 * words + w] = u[m + M_EXPIRED] & ~expired
    refs = ti[hb + R_REF_OF] + w
    for q in range(ti[refs], ti[refs + 1]):
        p = ti[hb + R_REF] + 3 * q
        bit = np.uint64(ti[p])
        level = now
        if ti[p + 2] != 0:
            level = raw
        if (level >> bit) & U1 != U0:
            x[ti[p + 1]] = 1.0
        elif (unknown >> bit) & U1 != U0:
            x[ti[p + 1]] = NAN
        else:
            x[ti[p + 1]] = 0.0


@kernel
def step_rules(hb: int, x: Any, f: Any, u: Any, ti: Any, tf: Any, tu: Any, sc: Any, xg: Any, out: Any) -> None:
    """Evaluate every rule of one scope once.

    Parameters
    ----------
    hb
        Where the scope's rule section starts in ``ti``.
    x
        float64 values; terms and references write into it.
    f, u
        The scope's rule memory: float64 and uint64.
    ti, tf, tu
        The tables.
    sc, xg
        Scratch: int32 verdicts, float64 gathered values.
    out
        uint64 words: matched, unknown, fired, just expired.
    """
    for s in range(ti[hb + R_STRATA]):
        of = ti[hb + R_TERM_OF] + s
        run_terms(ti[of], ti[of + 1], x, f, u, ti, ti[hb + R_TERMS], ti[hb + R_TERM_WORDS])
        of = ti[hb + R_SLOT_OF] + s
        run_atoms(
            ti[of], ti[of + 1], x, ti, tf, sc, xg, ti[hb + R_SLOT], ti[hb + R_IDX], ti[hb + R_SIGN], ti[hb + R_BOUND]
        )
        of = ti[hb + R_ROW_OF] + s
        n = gather_rules(ti[of], ti[of + 1], ti, sc, ti[hb + R_ROW], ti[hb + R_PERM], ti[hb + R_LEVEL])
        of = ti[hb + R_WORD_OF] + s
        for w in range(ti[of], ti[of + 1]):
            j = (w - ti[of]) * 64
            step_word(w, min(64, n - j), ti[hb + R_LEVEL] + j, x, u, ti, tu, sc, out, hb)
