from __future__ import annotations

import math

import numpy as np
import pytest

from stabilitykit.kernels.compile import compile_function
from stabilitykit.kernels.fastexp import LOWEST, exp_f4, log_f4, narrow


@pytest.mark.parametrize("make", [lambda f: f, compile_function], ids=["plain", "compiled"])
def test_exp_over_its_whole_range(make):
    """Relative error below 2.5e-7 from the least normal number up to e**88."""
    xs = np.linspace(float(LOWEST), 88.0, 4001).astype(np.float32)
    run = make(exp_f4)
    assert np.array([float(run(x)) for x in xs]) == pytest.approx(np.exp(xs.astype(float)), rel=2.5e-7)


@pytest.mark.parametrize("make", [lambda f: f, compile_function], ids=["plain", "compiled"])
def test_log_over_its_whole_range(make):
    """Error below 3e-7, absolute near 1 and relative elsewhere."""
    ys = np.append(np.exp(np.linspace(-87, 88, 4001)), [1.0, 1.0000001, 0.9999999]).astype(np.float32)
    run = make(log_f4)
    assert np.array([float(run(y)) for y in ys]) == pytest.approx(np.log(ys.astype(float)), rel=2e-7, abs=3e-7)


def test_nan_stays_nan():
    """A NaN is not turned into a probability."""
    assert math.isnan(exp_f4(np.float32(math.nan)))


def test_narrow_rounds_to_float32():
    """A float64 becomes the nearest float32."""
    assert float(narrow(0.1)) == float(np.float32(0.1)) != 0.1
