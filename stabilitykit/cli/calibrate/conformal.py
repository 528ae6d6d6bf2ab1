"""Split-conformal thresholds: how far the sessions of a healthy recording go, and what that promises of others.

Each session has one score, the furthest it goes. If n healthy sessions and a new one are exchangeable, the new score
exceeds the r-th smallest of the n with probability at most 1 - r / (n + 1), whatever the distribution. So
``r = ceil((n + 1)(1 - rate))`` keeps the share of falsely called sessions at ``rate`` on average over recordings.

On average: the recording at hand may have been lucky. Given it, the share of other sessions that will be called is
Beta(n + 1 - r, r) distributed (less where scores tie), and its quantiles are the spread. V. Vovk, "Conditional
validity of inductive conformal predictors", 2012; J. Lei et al., "Distribution-free predictive inference for
regression", 2018.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

__all__ = ["Threshold", "calibrate", "least_sessions", "rate_quantile"]

LEVEL = 0.975
"""The upper bound of the realised rate holds for so many recordings; with the lower one, for 95 in 100."""


@attrs.frozen
class Threshold:
    """What a healthy recording allows to be called.

    Parameters
    ----------
    value
        A session is called when it goes beyond; None: too few sessions, so nothing may be called yet.
    sessions
        Calibrated on so many.
    wanted
        Sessions needed for the rate.
    mean, low, high
        Share of other healthy sessions that will be called: its mean over recordings of this size, and the 2.5 % and
        97.5 % points of its spread. 0, 0, 1 while nothing is known.
    """

    value: float | None
    sessions: int
    wanted: int
    mean: float = 0.0
    low: float = 0.0
    high: float = 1.0


def least_sessions(rate: float) -> int:
    """Give the fewest sessions that bear a rate.

    >>> [least_sessions(rate) for rate in (0.5, 0.05, 0.01)]
    [1, 19, 99]
    """
    return next(n for n in range(max(1, math.floor(1 / rate) - 2), math.ceil(1 / rate) + 2) if _rank(n, rate) <= n)


def calibrate(scores: Sequence[float], rate: float) -> Threshold:
    """Give the threshold for a false rate of sessions.

    Parameters
    ----------
    scores
        The furthest each healthy session goes; greater is worse.
    rate
        Share of healthy sessions that may be called, above 0 and below 1.

    Examples
    --------
    >>> told = calibrate(range(50), 0.05)
    >>> told.value, told.wanted, round(told.mean, 3), round(told.low, 3), round(told.high, 3)
    (48, 19, 0.039, 0.005, 0.106)
    >>> calibrate(range(18), 0.05).value is None
    True
    """
    n = len(scores)
    rank = _rank(n, rate)
    if rank > n:
        return Threshold(None, n, least_sessions(rate))
    above = n + 1 - rank
    low, high = (rate_quantile(n, above, level) for level in (1 - LEVEL, LEVEL))
    return Threshold(sorted(scores)[rank - 1], n, least_sessions(rate), above / (n + 1), low, high)


def rate_quantile(n: int, above: int, level: float) -> float:
    """Give a quantile of Beta(above, n + 1 - above), the distribution of the rate realised.

    Its distribution function at x is the chance of at least ``above`` hits in n throws of chance x, so the quantile
    is exact to the last bisection.

    >>> round(rate_quantile(50, 2, 0.95), 4)
    0.0914
    """
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _at_least(n, above, middle) < level else (low, middle)
    return high


def _rank(n: int, rate: float) -> int:
    # 1e-9: (n + 1)(1 - rate) is a whole number for the rates people ask for, and must not be rounded up past it.
    return math.ceil((n + 1) * (1 - rate) - 1e-9)


def _at_least(n: int, hits: int, chance: float) -> float:
    """Chance of at least so many hits in n throws."""
    if chance >= 1.0:
        return 1.0
    terms = [
        math.exp(
            math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
            + k * math.log(chance) + (n - k) * math.log1p(-chance)
        )
        for k in range(hits)
    ]  # fmt: skip
    return 1.0 - math.fsum(terms)
