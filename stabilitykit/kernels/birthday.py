"""How many keys share a bucket by chance alone: n keys thrown evenly into m buckets.

A key collides when its bucket is taken already, so collisions are ``n - occupied``. With ``q = (1 - 1/m)^n``,
the chance that a bucket stays empty, their mean is ``n - m (1 - q)`` and their variance that of the empty
buckets, ``m q (1 - q) + m (m - 1) (r - q^2)`` with ``r = (1 - 2/m)^n``. Both are written so that nothing
cancels (``r - q^2 = q^2 ((1 - 1/(m-1)^2)^n - 1)``), and in a nearly empty table, where even that cancels,
both are the number of pairs over m, exact to a millionth (formulas B1.2).

References
----------
.. [1] N. L. Johnson, S. Kotz, "Urn models and their application", 1977.
.. [2] W. Kahan, HP-15C Advanced Functions Handbook, 1982 (log1p and expm1 from log and exp).
"""

from __future__ import annotations

import math

from stabilitykit.kernels._registry import kernel

__all__ = ["collision_z", "expected_collisions"]

_SPARSE = 1e-6
_ROUNDING = 1e-9


@kernel
def log_of_one_plus(x: float) -> float:
    """Give log(1 + x), x in (-1, 0]."""
    u = 1.0 + x
    return x if u == 1.0 else math.log(u) * x / (u - 1.0)


@kernel
def exp_less_one(y: float) -> float:
    """Give exp(y) - 1, y <= 0."""
    u = math.exp(y)
    less = u - 1.0
    if u == 1.0:
        return y
    return less if less == -1.0 else less * y / math.log(u)


@kernel
def expected_collisions(n: float, m: float) -> float:
    """Give the mean number of collisions of n keys in m buckets, both at least 1."""
    if n < m * _SPARSE:
        return n * (n - 1.0) / (2.0 * m)
    if m < 2.0:
        return n - 1.0
    return max(n + m * exp_less_one(n * log_of_one_plus(-1.0 / m)), 0.0)


@kernel
def collision_variance(n: float, m: float) -> float:
    """Give the variance of the number of collisions."""
    if n < m * _SPARSE:
        return n * (n - 1.0) / (2.0 * m)
    if m < 2.0:
        return 0.0
    y = n * log_of_one_plus(-1.0 / m)
    q = math.exp(y)
    apart = m - 1.0
    ratio = -1.0 if m < 3.0 else exp_less_one(n * log_of_one_plus(-1.0 / (apart * apart)))
    return max(m * apart * q * q * ratio - m * q * exp_less_one(y), 0.0)


@kernel
def collision_z(n: float, m: float, occupied: float) -> float:
    """Give how many standard deviations the collisions lie above their mean.

    The deviation counts as at least a billionth of the keys: below it the mean itself is rounding.
    """
    deviation = math.sqrt(collision_variance(n, m))
    return (n - occupied - expected_collisions(n, m)) / max(deviation, _ROUNDING * n)
