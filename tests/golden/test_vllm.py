"""What a real vLLM did, decided again: `benchmarks/record/vllm.py` recorded it with `stabilitykit probe`."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.record.vllm import RUNS, figures_table, preemptions
from stabilitykit import Engine
from stabilitykit.engine.replay import replay
from stabilitykit.sources.recording import LogFile

FOLDER = Path(__file__).parent
PACKS = ("vllm", "chat", "latency")


def recording(name):
    """Give the file of a run."""
    return FOLDER / f"vllm_{name}.jsonl"


def decided(name, pack):
    """Replay a run; gives its steps and the rules that matched."""
    steps = list(replay(Engine.load(pack, ttl_s=None), LogFile(recording(name)).entries()))
    return steps, {match.rule for step in steps for match in step.decision.matches}


def turns(name):
    """Give the rows of the turns."""
    rows = [json.loads(line) for line in recording(name).read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if "observe" not in row]


@pytest.mark.capability("issue 4 §5: golden data of a real vLLM: the packs call the preempted run, not the healthy one")
@pytest.mark.parametrize("pack", PACKS)
def test_the_preempted_run_is_called(pack):
    """28 blocks for eight streams: the replica preempts, and is in warning for it."""
    steps, rules = decided("preempted", pack)
    assert "replica-preempting" in rules
    assert "warning" in {step.decision.state for step in steps if step.decision.scope == "replica"}


@pytest.mark.capability("issue 4 §5: golden data of a real vLLM: the packs call the preempted run, not the healthy one")
@pytest.mark.parametrize("pack", PACKS)
def test_the_healthy_run_is_not_called(pack):
    """Forty turns of four conversations with room for all: nothing leaves `healthy`."""
    steps, _ = decided("healthy", pack)
    assert {step.decision.state for step in steps} == {"healthy"}


@pytest.mark.capability("issue 4 §5: golden data of a real vLLM: a conversation that outgrows the window is called")
def test_the_overflow_is_called():
    """The refusals break the conversation."""
    steps, rules = decided("overflow", "vllm")
    assert "context-overflow" in rules
    assert "broken" in {step.decision.state for step in steps}


@pytest.mark.capability("issue 4 §5: golden data of a real vLLM: preemptions with gaps of seconds, reuse of prefixes")
def test_what_was_seen():
    """Trouble was real: preemptions counted by the server, gaps far above the median; the healthy run hit its cache."""
    assert preemptions(recording("preempted")) > 0
    assert preemptions(recording("healthy")) == 0
    gaps = sorted(gap for turn in turns("preempted") for gap in turn.get("itl_ms_per_token", ()))
    assert gaps[-1] > 20 * gaps[len(gaps) // 2]
    healthy = turns("healthy")
    assert all(turn["error"] == "none" for turn in healthy)
    for name in {turn["session_id"] for turn in healthy}:
        mine = [turn for turn in healthy if turn["session_id"] == name]
        for before, now in pairwise(mine):  # whole blocks of 32 tokens, as many as the prompt before had
            assert now["cached_tokens"] % 32 == 0
            assert now["cached_tokens"] >= before["input_tokens"] // 32 * 32
    assert turns("overflow")[-1]["http_status"] == 400


def test_no_text_is_kept():
    """Neither prompts nor answers stand in a recording."""
    for run in RUNS:
        assert all(not isinstance(value, str) or len(value) < 40 for turn in turns(run.name) for value in turn.values())


def test_the_page_shows_these_figures(root):
    """The table of the page on vLLM is the one that these files give."""
    assert figures_table(FOLDER) in (root / "docs" / "deploy" / "vllm.md").read_text(encoding="utf-8")
