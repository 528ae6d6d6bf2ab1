"""A real vLLM on the CPU: `make live-vllm` installs it and runs these; they take minutes."""

from __future__ import annotations

import itertools
import json

import pytest

from benchmarks.record.vllm import CRAMPED, ROOMY, RUNS, hold, preemption_counts
from benchmarks.record.vllm_server import VllmServer, vllm_python

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(vllm_python() is None, reason="no environment with vLLM: `make live-vllm` makes one"),
]


@pytest.mark.capability("issue 4 §5: probe of a live vLLM (make live-vllm): healthy, overflow, preempted")
@pytest.mark.parametrize("settings", [ROOMY, CRAMPED], ids=["roomy", "cramped"])
def test_probe_a_live_vllm(settings, tmp_path):
    """Healthy is left alone and hits its cache; a window that is full, and 28 blocks for 8 streams, are called."""
    with VllmServer(settings) as server:
        for run in (run for run in RUNS if run.server == settings):
            hold(run, server.port, tmp_path)
    for run in (run for run in RUNS if run.server == settings):
        told = json.loads((tmp_path / f"vllm_{run.name}.json").read_text())
        rules = set(told["summary"]["rules"])
        assert told["server"] == "vLLM"
        if run.name == "healthy":
            assert told["figures"]["answered"] == told["figures"]["asked"] == 40
            assert told["figures"]["cache_hit_ratio"] > 0.5
            assert not {"replica-preempting", "context-overflow"} & rules
        elif run.name == "overflow":
            assert "context-overflow" in rules
        else:
            counts = preemption_counts(tmp_path / f"vllm_{run.name}.jsonl")
            rises = [later > earlier for earlier, later in itertools.pairwise(counts)]
            assert any(rises)
            # On a machine that is busy itself all of it may fall between two scrapes: the rule wants three of five.
            assert ("replica-preempting" in rules) == any(sum(rises[k : k + 5]) >= 3 for k in range(len(rises)))
