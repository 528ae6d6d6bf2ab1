"""Recordings: the shipped one, embeddings beside a log, the committed mappings on real data."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from stabilitykit.errors import RecordError
from stabilitykit.sample import Sample
from stabilitykit.sources.mapping import read_mapping
from stabilitykit.sources.recording import LogFile, shipped_recording
from stabilitykit.turn import Turn

MAPPINGS = shipped_recording().parent.parent / "mappings"


def entries(path, mapping=None) -> list[Any]:
    """Read a file, by a mapping of the package where one is named."""
    return list(LogFile(path, read_mapping(MAPPINGS / f"{mapping}.yaml") if mapping else None).entries())


def test_shipped_recording():
    """It is read whole, with an embedding on every turn."""
    entries = list(LogFile(shipped_recording()).entries())
    turns = [e for e in entries if isinstance(e, Turn)]
    assert len(turns) == 90
    assert len({t.session_id for t in turns}) == 4
    assert all(t.embedding is not None and t.embedding.shape == (384,) for t in turns)
    assert any(isinstance(e, Sample) for e in entries)


def test_embeddings_beside(write, tmp_path):
    """Row turn_id - 1 belongs to a turn; sessions without an array have none."""
    path = write("a.jsonl", '{"session_id": "x", "turn_id": 2}\n{"session_id": "y", "turn_id": 1}\n')
    np.savez(tmp_path / "a.embeddings.npz", x=np.eye(2, 3, dtype=np.float16))
    first, second = entries(path)
    assert first.embedding.tolist() == [0.0, 1.0, 0.0]
    assert second.embedding is None


def test_rubbish_beside(write, tmp_path):
    """A file that is no archive is an error; nothing is unpickled."""
    path = write("a.jsonl", '{"session_id": "x"}\n')
    (tmp_path / "a.embeddings.npz").write_bytes(b"PK rubbish")
    with pytest.raises(RecordError, match="no archive"):
        list(LogFile(path).entries())
    np.savez(tmp_path / "a.embeddings.npz", x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(RecordError, match="no archive"):
        list(LogFile(path).entries())


@pytest.mark.parametrize("name", sorted(p.stem for p in MAPPINGS.glob("*.yaml")))
def test_committed_mappings_are_sound(name):
    """Every mapping in the package can be read."""
    assert read_mapping(MAPPINGS / f"{name}.yaml").signals


@pytest.mark.capability(
    "issue 2 §7: real logs are read through mappings: BurstGPT on vLLM (requests, engine, GPU) and llmperf"
)
def test_burstgpt(shared_data):
    """Requests, engine and GPU of one run, in their units."""
    folder = shared_data / "traces"
    requests, engine, gpu = (
        entries(folder / f"burstgpt_vllm_scale100_{part}.csv", f"burstgpt_{part}")
        for part in ("requests", "engine", "gpu")
    )
    assert (len(requests), len(engine), len(gpu)) == (500, 538, 839)
    assert requests[0].ttft_ms == pytest.approx(32.317, abs=1e-3)
    assert 0 < max(s.signals["kv_usage_ratio"] for s in engine) < 0.48
    assert gpu[0].signals["gpu_memory_ratio"] == 22533 / 24576
    times = [e.timestamp_s for e in engine]
    assert times == sorted(times)


def test_llmperf(shared_data):
    """Every endpoint is a conversation; refused requests have an error and no latency."""
    path = shared_data / "traces" / "llmperf_individual.jsonl"
    turns = entries(path, "llmperf_individual")
    assert len(turns) == 1950
    assert len({t.session_id for t in turns}) == 13
    assert Counter(t.error for t in turns) == {"none": 1687, "rate_limited": 262, "server": 1}
    assert all(t.ttft_ms != t.ttft_ms for t in turns if t.error == "rate_limited")
