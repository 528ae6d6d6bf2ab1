"""How far two next-token distributions are apart, from two top-k lists or from the whole vocabulary.

Nothing is ever renormalised to the tokens that both sides know: that hides exactly the mass that
moved. Two top-k lists give two numbers. The *lower bound* merges every token that is not in both
lists into one cell; merging cells never increases a divergence (data-processing inequality), so it
is a guarantee. The *estimate* completes both lists: a token that only the other list names gets the
geometric mean of the least probability listed and an even share of what the list leaves open, the rest
is spread evenly. It is what the lists suggest, not what they prove.
"""

from __future__ import annotations

import math

import numpy as np

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.fastexp import LOWEST, exp_f4, log_f4, narrow
from stabilitykit.kernels.pointers import Block

__all__ = [
    "FLOOR",
    "FORWARD",
    "JS",
    "MASS_TOLERANCE",
    "REVERSE",
    "copy_f4",
    "divergence_term",
    "full_mixture",
    "full_moments",
    "is_end",
    "keep_top",
    "top_divergence",
    "top_mass",
]

FORWARD, REVERSE, JS = 0, 1, 2
"""KL(current || previous), KL(previous || current), Jensen-Shannon."""

FLOOR = 1e-10
"""Probability of a token that has none: a bounded answer where KL would be infinite."""

MASS_TOLERANCE = 1e-3
"""Probabilities may sum to this much more than 1 (whole vocabulary: or less) before they are no distribution."""

_MISSING = -9000.0  # servers write -9999 or -inf for "not computed"
_NO_LOGPROB = 0.01  # any log-probability above it breaks MASS_TOLERANCE alone
_ROUNDING = 4e-6  # what float32 log-probabilities can move a bound
_BLOCK = 2048  # float32 sums inside, float64 across
_NAN = math.nan
_LN2 = math.log(2.0)
_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
_LOG_FLOOR = np.float32(math.log(FLOOR))


@kernel
def divergence_term(q: float, lq: float, p: float, lp: float, direction: int) -> float:
    """Give one cell's share of a divergence from both probabilities and their logarithms."""
    if direction == FORWARD:
        return q * (lq - lp)
    if direction == REVERSE:
        return p * (lp - lq)
    m = 0.5 * (q + p)
    if m <= 0.0:
        return 0.0
    lm = math.log(m)
    return 0.5 * (q * (lq - lm) + p * (lp - lm))


@kernel
def top_mass(tokens: Block, logprobs: Block, count: int) -> float:
    """Give the probability that a top-k list covers; NaN when it is no such list or says nothing."""
    mass = 0.0
    for j in range(count):
        lp = float(logprobs[j]) + 0.0
        if not lp <= _NO_LOGPROB or tokens[j] < 0 or tokens[j] > 0xFFFF_FFFF:
            return _NAN
        if lp > _MISSING:
            mass += math.exp(lp)
    return mass if 0.0 < mass <= 1.0 + MASS_TOLERANCE else _NAN


@kernel
def keep_top(tokens: Block, logprobs: Block, count: int, f: Block, h: Block, at: int) -> int:
    """Store a top-k list, one entry a token (doubles summed), from element ``at`` on; gives its length."""
    kept = 0
    for j in range(count):
        lp = float(logprobs[j]) + 0.0
        if lp > _MISSING:
            i = _find(h, at, kept, tokens[j])
            if i < kept:
                old = float(f[at + i])
                f[at + i] = max(old, lp) + math.log(1.0 + math.exp(-abs(old - lp)))
            else:
                h[at + i] = tokens[j]
                f[at + i] = lp
                kept += 1
    return kept


@kernel
def _find(h: Block, at: int, count: int, token: int) -> int:
    """Give the place of a token in a list, its length when it is not there."""
    i = 0
    while i < count and h[at + i] != token:
        i += 1
    return i


@kernel
def top_divergence(
    f: Block, h: Block, now: int, k_now: int, s_now: float, old: int, k_old: int, s_old: float,
    vocab: float, direction: int, x: Block, out: int,
) -> None:  # fmt: skip
    """Compare two stored top-k lists.

    Parameters
    ----------
    f, h
        Log-probabilities and tokens of both lists.
    now, k_now, s_now
        Where the current list starts, its length, the probability that it covers.
    old, k_old, s_old
        The same of the previous list.
    vocab
        Tokens in the vocabulary.
    x, out
        To ``x[out]`` are added: estimate, lower bound, coverage, entropy difference (nats), share of common tokens.
    """
    vocab = max(vocab, 0.0 + k_now + k_old)
    tail_q, tail_p = max(1.0 - s_now, FLOOR * (vocab - k_now)), max(1.0 - s_old, FLOOR * (vocab - k_old))
    mass_q, mass_p = s_now + tail_q, s_old + tail_p
    cq, cp = math.log(mass_q), math.log(mass_p)
    tail_q, tail_p = tail_q / mass_q, tail_p / mass_p
    common = _common(h, now, k_now, old, k_old)
    log_q = _open_share(f, now, k_now, cq, tail_q, vocab, k_old - common)
    log_p = _open_share(f, old, k_old, cp, tail_p, vocab, k_now - common)
    open_q, open_p = math.exp(log_q), math.exp(log_p)
    estimate, bound, both_q, both_p = 0.0, 0.0, 0.0, 0.0
    for i in range(k_now):
        lq = float(f[now + i])
        q = math.exp(lq)
        j = _find(h, old, k_old, h[now + i])
        if j < k_old:
            lp = float(f[old + j])
            p = math.exp(lp)
            both_q += q
            both_p += p
            bound += divergence_term(q, lq, p, lp, direction)
            estimate += divergence_term(q / mass_q, lq - cq, p / mass_p, lp - cp, direction)
        else:
            estimate += divergence_term(q / mass_q, lq - cq, open_p, log_p, direction)
    for j in range(k_old):
        if _find(h, now, k_now, h[old + j]) == k_now:
            lp = float(f[old + j]) - cp
            estimate += divergence_term(open_q, log_q, math.exp(lp), lp, direction)
    rest = vocab - (k_now + k_old - common)
    if rest >= 1.0:
        rest_q = (tail_q - (k_old - common) * open_q) / rest
        rest_p = (tail_p - (k_now - common) * open_p) / rest
        estimate += rest * divergence_term(rest_q, math.log(rest_q), rest_p, math.log(rest_p), direction)
    x[out] = float(x[out]) + max(min(estimate, _LN2) if direction == JS else estimate, 0.0)
    x[out + 1] = float(x[out + 1]) + _rest_bound(bound, both_q, both_p, direction)
    x[out + 2] = float(x[out + 2]) + min(s_now, s_old, 1.0)
    x[out + 3] = (
        float(x[out + 3]) + _entropy(f, now, k_now, cq, tail_q, vocab) - _entropy(f, old, k_old, cp, tail_p, vocab)
    )
    x[out + 4] = float(x[out + 4]) + float(common) / float(max(k_now, k_old))


@kernel
def _entropy(f: Block, at: int, k: int, log_mass: float, tail: float, vocab: float) -> float:
    """Give the entropy of a list whose tail is spread evenly: the greatest that it allows."""
    total = -tail * math.log(tail / (vocab - k))
    for i in range(k):
        lp = float(f[at + i]) - log_mass
        total -= math.exp(lp) * lp
    return total


@kernel
def _common(h: Block, now: int, k_now: int, old: int, k_old: int) -> int:
    """Count the tokens of two lists that are in both."""
    count = 0
    for i in range(k_now):
        if _find(h, old, k_old, h[now + i]) < k_old:
            count += 1
    return count


@kernel
def _open_share(f: Block, at: int, k: int, log_mass: float, tail: float, vocab: float, missing: int) -> float:
    """Give the logarithm of the probability of a token that only the other list names, which has ``missing`` of them.

    No more than leaves the same to all others together as to each of these; all of the tail when there are no others.
    """
    even = math.log(tail / (vocab - k))
    if missing == 0 or vocab - k - missing < 1.0:
        return even
    least = float(f[at])
    for i in range(k):
        least = min(least, float(f[at + i]))
    return min(0.5 * (even + least - log_mass), math.log(tail / (missing + 1.0)))


@kernel
def is_end(tokens: Block, logprobs: Block, count: int, end: int) -> bool:
    """Tell whether the end mark has more than half of the probability of a top-k list."""
    mass = 0.0
    for j in range(count):
        if tokens[j] == end:
            mass += math.exp(min(float(logprobs[j]) + 0.0, 0.0))
    return mass > 0.5


@kernel
def _rest_bound(bound: float, both_q: float, both_p: float, direction: int) -> float:
    """Add the cell of all tokens that are not in both lists, and give way to rounding."""
    q, p = max(1.0 - both_q, 0.0), max(1.0 - both_p, 0.0)
    if direction == FORWARD:
        p = min(p + _ROUNDING, 1.0)
    elif direction == REVERSE:
        q = min(q + _ROUNDING, 1.0)
    lq = math.log(q) if q > 0.0 else 0.0
    lp = math.log(p) if p > 0.0 else 0.0
    bound += divergence_term(q, lq, p, lp, direction)
    return max(bound - _ROUNDING * (1.0 + abs(bound)), 0.0)


@kernel(fastmath={"contract", "reassoc"}, wide=True)
def _moments(a: Block, b: Block, lo: int, hi: int) -> tuple[np.float32, np.float32, np.float32, np.float32]:
    """Sum exp(a), exp(a) * a and exp(a) * (a - b) over one block, and count where b has no probability."""
    mass, weighted, cross, zeros = _ZERO, _ZERO, _ZERO, _ZERO
    for i in range(lo, hi):
        u = a[i]
        w = b[i]
        zeros += _ONE if w < LOWEST else _ZERO
        w = _LOG_FLOOR if w < LOWEST else w
        u = LOWEST if u < LOWEST else u
        u = _ONE if u > _ONE else u
        e = exp_f4(u)
        mass += e
        weighted += e * u
        cross += e * (u - w)
    return mass, weighted, cross, zeros


@kernel
def full_moments(a: Block, b: Block, n: int) -> tuple[float, float, float, float]:
    """Give what one distribution's log-probabilities say, alone and against another's.

    Returns
    -------
    mass, weighted, cross, zeros
        Sum of exp(a); of exp(a) * a; of exp(a) * (a - b), where a ``b`` without probability counts
        as ``log(FLOOR)``; number of these. A NaN shows in the sums; a value that no log-probability
        can have counts as 1 and makes the mass too great.
    """
    mass, weighted, cross, zeros = 0.0, 0.0, 0.0, 0.0
    lo = 0
    while lo < n:
        hi = min(lo + _BLOCK, n)
        m, s, t, z = _moments(a, b, lo, hi)
        mass += float(m)
        weighted += float(s)
        cross += float(t)
        zeros += float(z)
        lo = hi
    return mass, weighted, cross, zeros


@kernel(fastmath={"contract", "reassoc"}, wide=True)
def _mixture(a: Block, b: Block, ca: np.float32, cb: np.float32, lo: int, hi: int) -> np.float32:
    """Sum m log m over one block, m the mean of both probabilities."""
    total = _ZERO
    for i in range(lo, hi):
        u = a[i] - ca
        w = b[i] - cb
        u = LOWEST if u < LOWEST else u
        w = LOWEST if w < LOWEST else w
        m = _HALF * (exp_f4(u) + exp_f4(w))
        total += m * log_f4(m)
    return total


@kernel
def full_mixture(a: Block, b: Block, mass_a: float, mass_b: float, n: int) -> float:
    """Give the entropy (nats) of the even mixture of two whole distributions of known mass."""
    ca, cb = narrow(math.log(mass_a)), narrow(math.log(mass_b))
    total = 0.0
    lo = 0
    while lo < n:
        hi = min(lo + _BLOCK, n)
        total -= float(_mixture(a, b, ca, cb, lo, hi))
        lo = hi
    return total


@kernel
def copy_f4(source: Block, target: Block, n: int) -> None:
    """Copy n float32 elements."""
    for i in range(n):
        target[i] = source[i]
