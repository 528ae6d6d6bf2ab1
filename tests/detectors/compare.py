"""Run a detector and its naive twin over the same turns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import strategies as st

from stabilitykit.detectors.trace import Instance, settings_of
from stabilitykit.signals import DetectorSpec

__all__ = ["check_agreement", "latencies"]

latencies = st.lists(
    st.one_of(
        st.none(),
        st.sampled_from([0.0, 1.0, 2.0, 32.0, 40.0, 48.0, 1e-300, 0.01, 131072.0, 1e15, 1e200, 1.7e308]),
        st.floats(0.0, 100.0),
        st.integers(1, 60).map(float),
    ),
    max_size=80,
)
"""Turns of one positive signal: unknown, extremes, ties, ordinary."""


def check_agreement(
    spec: DetectorSpec,
    twin: Any,
    rows: Iterable[Any],
    settings: Mapping[str, Any] | None = None,
    tolerance: float = 0.0,
) -> list[dict[str, float]]:
    """Demand equal outputs on every turn, unknown where the twin says None; gives the outputs."""
    instance, naive, outputs = Instance(spec, settings), twin(settings_of(spec, settings)), []
    for turn, value in enumerate(rows, start=1):
        got, want = instance.update({"input": value}), naive.update({"input": value})
        assert got.keys() == want.keys()
        for name, expected in want.items():
            same = (
                math.isnan(got[name])
                if expected is None
                else math.isclose(got[name], expected, rel_tol=tolerance, abs_tol=tolerance)
            )
            assert same, (turn, name, got[name], expected)
        outputs.append(got)
    return outputs
