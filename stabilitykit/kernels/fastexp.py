"""exp and log of one float32 in a dozen instructions, so that loops over a vocabulary vectorise.

``math.exp`` is a call: a loop around it stays scalar, and numba's vector library (SVML) is not in
the packaged compiler. Both functions here are straight-line polynomials of float32, the same in
plain Python (NumPy scalars) and compiled. They split off the power of two by the bits of the
number, which needs the casts of this file; everywhere else kernels avoid NumPy.
"""

from __future__ import annotations

import numpy as np
from numpy import float32, int32

from stabilitykit.kernels._registry import kernel

__all__ = ["LOWEST", "exp_f4", "log_f4", "narrow"]

LOWEST = np.float32(-87.3)
"""Below it exp is not a normal float32; callers clamp first."""

_ONE = np.float32(1.0)
_LOG2E = np.float32(1.4426950408889634)
_ROUND = np.float32(12582912.0)  # 1.5 * 2**23: adding it rounds to a whole number, kept in the low bits
_LN2_HIGH = np.float32(0.693359375)  # 9 bits: its product with the exponent is exact
_LN2_LOW = np.float32(-2.12194440e-4)
_E1 = np.float32(0.9999997019767761)  # (exp(r) - 1) / r on |r| <= ln(2)/2, minimax: 9.2e-8
_E2 = np.float32(0.4999914765357971)
_E3 = np.float32(0.1666763871908188)
_E4 = np.float32(0.04189816117286682)
_E5 = np.float32(0.008290272206068039)
_ROOT_HALF = 0x3F35_04F3  # bits of sqrt(1/2): mantissas are taken from [sqrt(1/2), sqrt(2))
_L1 = np.float32(0.9999999403953552)  # log(1 + t) / t there, minimax: 1.7e-7
_L2 = np.float32(-0.5000036358833313)
_L3 = np.float32(0.33335059881210327)
_L4 = np.float32(-0.24969910085201263)
_L5 = np.float32(0.19900168478488922)
_L6 = np.float32(-0.17250828444957733)
_L7 = np.float32(0.16222557425498962)
_L8 = np.float32(-0.10106873512268066)


@kernel
def narrow(x: float) -> np.float32:
    """Round a float64 to float32."""
    return float32(x)


@kernel(fastmath={"contract"})
def exp_f4(x: np.float32) -> np.float32:
    """Give exp(x) for ``LOWEST <= x <= 88``, relative error below 2.5e-7; NaN stays NaN."""
    z = x * _LOG2E + _ROUND
    n = z - _ROUND
    r = x - n * _LN2_HIGH - n * _LN2_LOW
    y = (((_E5 * r + _E4) * r + _E3) * r + _E2) * r + _E1
    bits = float32(y * r + _ONE).view(int32) + int32(float32(z).view(int32) << 23)  # exponent + n
    return int32(bits).view(float32)


@kernel(fastmath={"contract"})
def log_f4(x: np.float32) -> np.float32:
    """Give log(x) of a positive normal float32, error below 3e-7 or 2e-7 of the result; NaN is not kept."""
    bits = float32(x).view(int32)
    e = (bits - _ROOT_HALF) >> 23
    t = int32(bits - (e << 23)).view(float32) - _ONE
    y = (((((_L8 * t + _L7) * t + _L6) * t + _L5) * t + _L4) * t + _L3) * t + _L2
    n = float32(int32(e))
    return n * _LN2_HIGH + (n * _LN2_LOW + (y * t + _L1) * t)
