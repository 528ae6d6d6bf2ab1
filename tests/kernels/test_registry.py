from __future__ import annotations

from typing import Any

import pytest

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.divergence import full_moments
from stabilitykit.kernels.fingerprint import fingerprint


def double(x):
    """Give twice x."""
    return x + x


def test_options_are_stored_sorted_and_change_nothing_in_python():
    """The mark returns the function itself; options have one order in every process."""
    plain: Any = double
    marked: Any = kernel(fastmath={"reassoc", "contract"}, wide=True)(plain)
    assert marked is plain
    assert list(marked.__kernel_options__["fastmath"]) == ["contract", "reassoc"]
    assert marked.__kernel_wide__ is True
    assert marked(2.0) == 4.0


@pytest.mark.parametrize("flag", ["nnan", "ninf", "nsz", "arcp", "afn", "fast"])
def test_options_that_lose_nan_are_refused(flag):
    """Only reassociation and contraction: the others may change unknowns and breaker states."""
    with pytest.raises(ValueError, match="keep NaN"):
        kernel(fastmath={flag})


def test_options_are_part_of_the_fingerprint(monkeypatch):
    """Machine code made with other options is other machine code, in functions that are called too."""
    before = fingerprint(full_moments, "test")
    called = full_moments.__globals__["_moments"]
    monkeypatch.delattr(called, "__kernel_wide__")
    narrow = fingerprint(full_moments, "test")
    monkeypatch.delattr(called, "__kernel_options__")
    assert len({before, narrow, fingerprint(full_moments, "test")}) == 3
