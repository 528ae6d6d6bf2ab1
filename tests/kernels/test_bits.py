from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stabilitykit.kernels import kernel
from stabilitykit.kernels.bits import float_bits, popcount64
from stabilitykit.kernels.compile import compile_function


@kernel
def bits_of(x: float) -> int:
    """Call the primitive from a kernel, as detectors do."""
    return float_bits(x)


@kernel
def ones_of(x: int) -> int:
    """Call the primitive from a kernel, as detectors do."""
    return popcount64(x)


compiled_bits, compiled_ones = compile_function(bits_of), compile_function(ones_of)


@given(st.floats(width=64))
@example(0.0)
@example(-0.0)
@example(math.nan)
@example(math.inf)
@example(-math.inf)
@example(5e-324)
@example(1.7976931348623157e308)
def test_float_bits(x):
    """The pattern is that of numpy, compiled and plain, for every float."""
    expected = int(np.float64(x).view(np.int64))
    assert float_bits(x) == bits_of(np.float64(x)) == compiled_bits(x) == expected


@given(st.integers(-(2**63), 2**63 - 1))
@example(-1)
@example(-(2**63))
def test_popcount_of_signed_words(x):
    """Signed words count in two's complement, compiled and plain."""
    expected = bin(x % 2**64).count("1")
    assert popcount64(x) == compiled_ones(x) == expected


@pytest.mark.parametrize("x", [0, 1, 2**63, 2**64 - 1, 0x5555_5555_5555_5555])
def test_popcount_of_unsigned_words(x):
    """Unsigned words count all 64 bits."""
    word: Any = np.uint64(x)
    assert popcount64(word) == ones_of(word) == compiled_ones(word) == bin(x).count("1")
