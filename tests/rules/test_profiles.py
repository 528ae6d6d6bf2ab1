"""Profiles (what the talk is about) and engines (who serves it), laid over `chat`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.subjects.replay_real import PROFILES, RECORDING, profile
from stabilitykit import Engine, Turn
from stabilitykit.detectors import DETECTORS
from stabilitykit.rules.load import load_pack

TALKS = ("technical", "creative", "agent")
SERVERS = ("vllm", "sglang", "llamacpp", "ollama", "api")


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("talk", TALKS)
@pytest.mark.capability(
    "issue 3 §3: profiles technical, creative, agent and engines vllm, sglang, llamacpp, ollama, api"
)
def test_every_talk_goes_on_every_server(talk, server):
    """A profile and an engine can be laid over one another, in either order, and then it is still `chat`."""
    states = [s.name for s in load_pack("chat", detectors=DETECTORS).states]
    for order in ([talk, server], [server, talk]):
        engine = Engine.load(order)
        assert [s.name for s in engine.pack.states] == states
        assert engine.evaluate(Turn(session_id="s", itl_ms=30.0)).state == "healthy"


@pytest.mark.parametrize("pack", PROFILES)
@pytest.mark.capability(
    "issue 3 §3: profiles and engines leave the recorded healthy conversation alone, call the others"
)
def test_the_recorded_run_is_decided_rightly(pack):
    """Nothing above info in the healthy conversation; every trouble is called by the turn on which it is a refusal."""
    if not RECORDING.is_file():
        pytest.skip("the recording is not there yet: make it with benchmarks/record")
    found = profile({}, pack)
    assert found["healthy_recording"] == {}
    assert found["first_called"].keys() == {"slowed", "overflow", "shift"}
    assert found["first_called"]["overflow"] < 16
    assert found["first_called"]["shift"] < 8
    assert found["first_called"]["slowed"] in range(11, 14)


@pytest.mark.capability("issue 3 §3: no compensate_positions where a model's or a provider's cache cannot be shifted")
@pytest.mark.parametrize("pack", ["chat", *PROFILES])
def test_a_latent_cache_is_never_shifted(pack):
    """A host that says is_mla is not told to compensate, whatever it loads; nor is anybody of a hosted API."""
    engine = Engine.load(pack)
    off: dict[str, Any] = {"input_tokens": 4, "sent_tokens": 8, "position_ids": np.array([5, 6, 7, 8])}
    told = engine.evaluate(Turn(session_id="latent", is_mla=True, **off))
    assert "compensate_positions" not in [a.name for a in told.actions]
    usual = engine.evaluate(Turn(session_id="keys", **off))
    assert ("compensate_positions" in [a.name for a in usual.actions]) == (pack not in ("api", "llamacpp"))


@pytest.mark.capability("issue 3 §3: on a hosted API no ITL baseline is narrower than the conversation's own p90")
@pytest.mark.parametrize("param", [{}, {"usual_itl": "5 ms"}])
def test_no_baseline_of_an_api_is_narrower_than_its_p90(param):
    """Whatever the params say: cold there is no threshold, warm it is above the p90 of all that was not over it."""
    engine = Engine.load("api", params=param)
    itl = next(d for d in engine.pack.detectors if d.id == "itl")
    assert (itl.settings["method"], itl.settings["baseline_ms"], itl.settings["warmup"]) == ("p90", 0.0, 20)
    rng = np.random.default_rng(3)
    usual: list[float] = []
    for value in np.exp(rng.normal(3.0, 0.3, size=300)):
        decision = engine.evaluate(Turn(session_id="s", itl_ms=float(value)))
        threshold = engine._live.values(decision)[engine._live.program.slots["itl.threshold_ms"]]
        assert np.isnan(threshold) if len(usual) < 20 else threshold >= np.quantile(usual, 0.9)
        usual += [float(value)] if not value > threshold else []


@pytest.mark.capability("issue 3 §3: vLLM's memory at rest trips no fuse; its KV usage is forecast instead")
def test_vllm_at_rest_is_healthy_and_its_cache_is_forecast():
    """91.7 % of the memory is what it takes when idle; a cache that fills is told before it is full."""
    engine = Engine.load("vllm")
    rest = [
        engine.observe(device="gpu0", timestamp_s=float(k), gpu_memory_ratio=0.917 + 0.01 * (k % 3)) for k in range(12)
    ]
    assert {d.state for d in rest} == {"healthy"}
    told = None
    for k in range(12):
        usage = 0.70 + 0.03 * k
        decision = engine.observe(replica="r", timestamp_s=float(k), kv_usage_ratio=usage, running_requests=60.0)
        if "kv-soon-full" in decision.fired:
            told = usage
            break
    assert told is not None
    assert told < 0.9


@pytest.mark.capability("issue 3 §3: after a retraction only the rate says that an SGLang server is well again")
def test_sglang_is_well_when_its_rate_is():
    """At 20 to 38 tokens a second instead of 429 it stays in `warning` while that lasts, whatever its usage."""
    engine = Engine.load("sglang")
    chat = Engine.load("chat")
    slow = [429.0] * 10 + [20.0, 29.0, 38.0] * 40
    turns = [Turn(session_id="s", decode_tokens_per_s=rate, kv_usage_ratio=0.3) for rate in slow]
    states = [engine.evaluate(turn).state for turn in turns]
    assert set(states[12:]) == {"warning"}
    assert chat_forgets(chat, turns)
    back = [engine.evaluate(Turn(session_id="s", decode_tokens_per_s=425.0)).state for _ in range(10)]
    assert back[-1] == "healthy"


def chat_forgets(engine: Engine, turns: list[Turn]) -> bool:
    """Tell whether `chat` alone takes the low rate for the usual one in the end."""
    return [engine.evaluate(turn).state for turn in turns][-1] == "healthy"


@pytest.mark.capability("issue 3 §3: progress and polling are no loop for an agent")
def test_an_agent_that_polls_makes_no_loop():
    """The same tool call twelve times is work; the same reply without progress is a loop."""
    engine = Engine.load("agent")
    ids = np.arange(60, dtype=np.int64)
    polling = [
        engine.evaluate(Turn(session_id="p", finish_reason="tool_calls", output_token_ids=ids)) for _ in range(12)
    ]
    moving = [engine.evaluate(Turn(session_id="m", progress_count=float(k), output_token_ids=ids)) for k in range(12)]
    assert {d.state for d in (*polling, *moving)} == {"healthy"}
    stuck = [engine.evaluate(Turn(session_id="l", progress_count=1.0, output_token_ids=ids)) for _ in range(4)]
    assert "replies-repeat" in {rule for d in stuck for rule in d.fired}
