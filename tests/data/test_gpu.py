from __future__ import annotations

import pytest

from benchmarks.subjects import gpu


@pytest.fixture(scope="module")
def found(shared_data):
    """Run the subject once."""
    return gpu.run(shared_data)


def line(found, of, kind):
    """Give one line of the report."""
    return next(one for one in found.lines if one.of == of and one.kind == kind)


@pytest.mark.slow
@pytest.mark.capability("issue 6: GPU runs: no trip in order, ten injected ramps called within 15 s, all lines")
@pytest.mark.capability(
    "issue 3 §1: no GPU rule trips on real runs in order; ten injected ramps are called within 15 s"
)
def test_real_runs_and_ramps(found):
    """The pack trips on no run in order and calls every ramp; the source's limit trips on busy cards, misses ramps."""
    assert all(target.is_met for target in found.targets)
    assert line(found, "runs in order", "ours").figures["runs"] >= 10
    assert line(found, "runs in order", "source").figures["tripped"] > 0
    assert line(found, "ramps", "source").figures["called in 15 s"] < gpu.RAMPS
    assert line(found, "ramps", "check").figures["called in 15 s"] == 0


@pytest.mark.capability("issue 3 §1: a real server that fills its GPU to 99 % trips the memory fuse, with hysteresis")
def test_a_real_card_that_is_full(shared_data):
    """One vLLM run goes over 92 % of memory: the pack calls it at that sample, and takes it back only below 85 %."""
    rows = gpu.read_runs(shared_data)["burstgpt_vllm_scale1000_gpu"]
    full = [float(row[0]) for row in rows if row[1] > gpu.FULL]
    assert gpu.ours(rows)[0] == full[0]
    assert len(gpu.ours(rows)) == sum(row[0] >= full[0] for row in rows)
    assert rows[:, 1].min() > 0.85
