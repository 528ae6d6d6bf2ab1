"""The entropy and the likeliest of some classes, from their probabilities or from a linear model."""

from __future__ import annotations

import math

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.cosine import dot
from stabilitykit.kernels.pointers import Block

__all__ = ["given_entropy", "linear_entropy"]

_TOLERANCE = 0.01
"""Probabilities may miss 1 in their sum by this much (rounded ones do); then they are no distribution."""


@kernel
def given_entropy(p: Block, n: int) -> tuple[float, int]:
    """Give the entropy (nats) of normalised probabilities and the first greatest; NaN for what are none."""
    total, weighed, best = 0.0, 0.0, 0
    for i in range(n):
        value = float(p[i]) + 0.0
        if not value >= 0.0:
            return math.nan, 0
        if value > 0.0:
            total += value
            weighed += value * math.log(value)
        if value > float(p[best]) + 0.0:
            best = i
    if not abs(total - 1.0) <= _TOLERANCE:
        return math.nan, 0
    return max(math.log(total) - weighed / total, 0.0), best


@kernel
def linear_entropy(c: Block, rows: int, bias: int, u: Block, scale: float, dim: int, n: int) -> tuple[float, int]:
    """Give the same of softmax(W scale u + b), W in c[rows:], b in c[bias:]; NaN where u is not finite.

    One pass: with the greatest logit m so far, s = sum exp(l - m) and t = sum (l - m) exp(l - m), the
    entropy is log s - t / s.
    """
    m, s, t, best = -math.inf, 0.0, 0.0, 0
    for i in range(n):
        logit = scale * dot(c, rows + i * dim, u, 0, dim) + float(c[bias + i])
        if not abs(logit) < math.inf:
            return math.nan, 0
        if i == 0:
            m, s = logit, 1.0
        elif logit > m:
            step = m - logit
            t = (t + step * s) * math.exp(step)
            s = s * math.exp(step) + 1.0
            m, best = logit, i
        else:
            share = math.exp(logit - m)
            s += share
            t += (logit - m) * share
    return max(math.log(s) - t / s, 0.0), best
