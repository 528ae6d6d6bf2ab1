"""Whether two arms differ: exact and approximate tests, and how many conversations a difference needs to show.

Formulas B2.5 names the tests; the sample size is the usual one for two proportions without pooling (Fleiss,
*Statistical Methods for Rates and Proportions*, 2003, section 4.2, without the continuity correction).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import attrs
import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Difference",
    "fisher_exact",
    "holm",
    "mcnemar_exact",
    "permutation",
    "sessions_for_means",
    "sessions_for_shares",
    "two_means",
    "two_proportions",
]

_BLOCK = 1 << 20
"""Most values dealt at once: 8 MiB, and as much again while they are dealt."""
_TIE = 1.0 + 1e-7
"""Tables as likely as the one seen, up to rounding, count as unlikely as it."""


@attrs.frozen
class Difference:
    """Treatment minus control, with its 95 % interval and the p-value of no difference (NaN where there is none)."""

    value: float
    low: float
    high: float
    p: float


def fisher_exact(hits: int, of: int, other_hits: int, other_of: int) -> float:
    """Give the two-sided p-value of Fisher's exact test for two shares.

    Examples
    --------
    >>> round(fisher_exact(1, 10, 11, 14), 6)
    0.002759
    """
    total = hits + other_hits
    low, high = max(0, total - other_of), min(total, of)
    logs = [_log_comb(of, k) + _log_comb(other_of, total - k) for k in range(low, high + 1)]
    seen = logs[hits - low]
    top = max(logs)
    weights = [math.exp(one - top) for one in logs]
    extreme = [w for w, one in zip(weights, logs, strict=True) if one <= seen + math.log(_TIE)]
    return min(1.0, math.fsum(extreme) / math.fsum(weights))


def _log_comb(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def two_proportions(hits: int, of: int, other_hits: int, other_of: int) -> Difference:
    """Compare two shares: the difference ``other - first``, its Wald interval, and the pooled z-test.

    Examples
    --------
    >>> difference = two_proportions(20, 100, 10, 100)
    >>> round(difference.value, 3), round(difference.p, 4)
    (-0.1, 0.0477)
    """
    first, other = hits / of, other_hits / other_of
    pooled = (hits + other_hits) / (of + other_of)
    spread = math.sqrt(pooled * (1 - pooled) * (1 / of + 1 / other_of))
    wald = math.sqrt(first * (1 - first) / of + other * (1 - other) / other_of)
    p = 2 * NormalDist().cdf(-abs(other - first) / spread) if spread > 0 else 1.0
    return _around(other - first, wald, p)


def two_means(control: Sequence[float], treatment: Sequence[float]) -> Difference:
    """Compare two means: the difference, its interval without equal variances, and a permutation test."""
    a, b = np.asarray(control, float), np.asarray(treatment, float)
    spread = math.sqrt(a.var(ddof=1) / a.size + b.var(ddof=1) / b.size)
    return _around(float(b.mean() - a.mean()), spread, permutation(a, b))


def permutation(a: NDArray[np.float64], b: NDArray[np.float64], *, rounds: int = 9_999, seed: int = 1) -> float:
    """Give the p-value of equal means when labels are dealt anew; the same seed gives the same value."""
    together, rng = np.concatenate([a, b]), np.random.default_rng(seed)
    seen = abs(float(b.mean() - a.mean()))
    as_far, left = 0, rounds
    while left:
        now = min(left, max(1, _BLOCK // together.size))
        dealt = rng.permuted(np.broadcast_to(together, (now, together.size)), axis=1)
        apart = np.abs(dealt[:, a.size :].mean(axis=1) - dealt[:, : a.size].mean(axis=1))
        as_far += int((apart >= seen * (1 - 1e-9)).sum())
        left -= now
    return (1 + as_far) / (1 + rounds)


def mcnemar_exact(only_control: int, only_treatment: int) -> float:
    """Give the two-sided p-value of pairs that differ one way as often as the other (binomial, one half).

    Examples
    --------
    >>> mcnemar_exact(1, 9)
    0.021484375
    """
    pairs, fewer = only_control + only_treatment, min(only_control, only_treatment)
    tail = sum(math.comb(pairs, k) for k in range(fewer + 1))
    return min(1.0, 2 * tail / (1 << pairs))


def holm(values: Sequence[float]) -> list[float]:
    """Correct p-values for being several (Holm's step-down).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected, running = [0.0] * len(values), 0.0
    for rank, k in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        running = max(running, min(1.0, (len(values) - rank) * values[k]))
        corrected[k] = running
    return corrected


def sessions_for_shares(first: float, other: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Give the conversations that each arm needs to show this difference of shares; infinite where there is none.

    Examples
    --------
    >>> sessions_for_shares(0.2, 0.1)
    199.0
    """
    if first == other:
        return math.inf
    mean = (first + other) / 2
    wanted = _z(1 - alpha / 2) * math.sqrt(2 * mean * (1 - mean))
    wanted += _z(power) * math.sqrt(first * (1 - first) + other * (1 - other))
    return float(math.ceil((wanted / (first - other)) ** 2))


def sessions_for_means(spread: float, difference: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Give the same for a difference of means; ``spread`` is the standard deviation of one conversation."""
    if difference == 0.0:
        return math.inf
    return float(math.ceil(2 * ((_z(1 - alpha / 2) + _z(power)) * spread / difference) ** 2))


def _z(share: float) -> float:
    return NormalDist().inv_cdf(share)


def _around(value: float, spread: float, p: float) -> Difference:
    reach = _z(0.975) * spread
    return Difference(value, value - reach, value + reach, p)
