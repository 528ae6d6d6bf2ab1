"""Run a detector in three ways: plain, compiled, and as its naive twin."""

from __future__ import annotations

import math

from stabilitykit.detectors.trace import Instance, compiled_kernel, settings_of


def unknown_as_none(outputs):
    """Give outputs with None for NaN, as a naive twin does."""
    return {name: None if value is None or math.isnan(value) else value for name, value in outputs.items()}


def check_twins(spec, naive, rows, settings=None, tolerance=1e-9):
    """Fail unless the plain kernel and its naive twin say the same, turn by turn."""
    plain, twin = Instance(spec, settings), naive(settings_of(spec, settings))
    for number, row in enumerate(rows, 1):
        got, wanted = unknown_as_none(plain.update(row)), unknown_as_none(twin.update(row))
        for name, value in wanted.items():
            if value is None or got[name] is None:
                assert got[name] is value, f"turn {number}: {got} is not {wanted}"
            else:
                assert math.isclose(got[name], value, rel_tol=tolerance, abs_tol=tolerance), f"{number}: {got} {wanted}"


def check_compiled(spec, rows, settings=None, tolerance=0.0):
    """Fail unless machine code and plain Python say the same (0: bit for bit) and end in the same memory."""
    plain, fast = Instance(spec, settings), Instance(spec, settings, compiled_kernel(spec))
    for row in rows:
        a, b = unknown_as_none(plain.update(row)), unknown_as_none(fast.update(row))
        for name in a:
            exact = a[name] == b[name]
            assert exact or math.isclose(a[name], b[name], rel_tol=tolerance, abs_tol=tolerance), (a, b)
    if tolerance == 0.0:
        assert [m.tobytes() for m in plain.memory] == [m.tobytes() for m in fast.memory]
