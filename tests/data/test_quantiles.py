"""p99.9 of a stream in 3 KB, on six distributions."""

from __future__ import annotations

import pytest

from benchmarks.subjects import quantiles


@pytest.mark.slow
@pytest.mark.capability("issue 6: quantiles: worst relative error of p99.9 in 3 KB on six distributions; exact merge")
def test_targets_and_lines(shared_data):
    """The worst error is at most 1.1 %, merged quarters are the whole to the bit; another's quantile is far off."""
    report = quantiles.run(shared_data)
    assert [t.what for t in report.targets if not t.is_met] == []
    assert {line.kind for line in report.lines} == {"trivial", "source", "reference", "ours", "check"}
    check = next(line for line in report.lines if line.kind == "check")
    assert check.figures["worst"] > 1.0
