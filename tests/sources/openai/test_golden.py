"""The Turn of every recorded reply in ../shared/data/responses, worked out by hand from the files.

A stream's request is sent at 0 s; its events arrive at 1 s, 1.01 s, 1.02 s and so on. A whole reply arrives at 2.5 s.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from stabilitykit.sources.openai import TurnRecorder
from stabilitykit.sources.openai.tokens import token_id
from stabilitykit.turn import is_missing

OPENAI = {"error": "none", "rt_ms": 2500.0, "pending_requests": 0}
STREAMS: dict[str, dict[str, Any]] = {
    # 402 events: a role, 400 tokens, the end with usage.
    "deepseek_chat_stream.sse": {
        "model": "deepseek-chat", "error": "none", "finish_reason": "length", "ttft_ms": 1010.0, "itl_ms": 10.0,
        "rt_ms": 5010.0, "tpot_ms": 4000 / 399, "decode_tokens_per_s": 100.0, "input_tokens": 13, "output_tokens": 400,
        "cached_tokens": 0,
    },
    # 211 events: a role, 198 of reasoning, 11 of content, the end. 212 tokens, the end mark is one of them.
    "deepseek_reasoner_raw_capture.sse": {
        "model": "deepseek-reasoner", "error": "none", "finish_reason": "stop", "ttft_ms": 1010.0,
        "itl_ms": 10 * 209 / 211, "rt_ms": 3100.0, "tpot_ms": 2090 / 211, "decode_tokens_per_s": 100 * 211 / 209,
        "input_tokens": 6, "output_tokens": 212, "cached_tokens": 0, "reasoning_tokens": 198,
    },
    # 52 events: a role, 39 of reasoning, 11 of the tool call, the end. 83 tokens over 50 chunks.
    "deepseek_tool_call_stream.sse": {
        "model": "deepseek-reasoner", "error": "none", "finish_reason": "tool_calls", "ttft_ms": 1010.0,
        "itl_ms": 10 * 50 / 83, "rt_ms": 1510.0, "tpot_ms": 500 / 82, "decode_tokens_per_s": 166.0, "input_tokens": 339,
        "output_tokens": 83, "cached_tokens": 320, "reasoning_tokens": 39,
    },
    # 4 events, all with text, usage on the last: 12 tokens, less the end mark, over 4 chunks.
    "moonshot_stream.sse": {
        "model": "kimi-k3", "error": "none", "finish_reason": "stop", "ttft_ms": 1000.0, "itl_ms": 10 * 4 / 11,
        "rt_ms": 1030.0, "tpot_ms": 30 / 11, "decode_tokens_per_s": 275.0, "input_tokens": 9, "output_tokens": 12,
        "reasoning_tokens": 7,
    },
    # 6 events: the name of a tool, two pieces of its arguments, an empty one, the end, usage. 22 tokens over 3 chunks.
    "qwen_alibaba_tool_call_stream.sse": {
        "model": "qwen3-max", "error": "none", "finish_reason": "tool_calls", "ttft_ms": 1000.0, "itl_ms": 10 * 3 / 22,
        "rt_ms": 1050.0, "tpot_ms": 50 / 21, "decode_tokens_per_s": 100 * 22 / 3, "input_tokens": 295,
        "output_tokens": 22, "cached_tokens": 0,
    },
    # 6 events: a role, five with text. Neither usage nor an end: the capture was cut, so the server went away.
    "vllm_chat_stream_no_usage.sse": {
        "model": "Qwen-v", "error": "server", "ttft_ms": 1010.0, "itl_ms": 10.0, "rt_ms": 1050.0,
        "decode_tokens_per_s": 100.0,
    },
    # 344 events: 340 of reasoning, 2 of content, the end, usage. Completion tokens are told without the reasoning.
    "xai_chat_stream.sse": {
        "model": "grok-3-mini", "error": "none", "finish_reason": "stop", "ttft_ms": 1000.0, "itl_ms": 10.0,
        "rt_ms": 4430.0, "tpot_ms": 3430 / 341, "decode_tokens_per_s": 100.0, "input_tokens": 12, "output_tokens": 342,
        "cached_tokens": 11, "reasoning_tokens": 340,
    },
    # A list of 4 chunks: two tokens, the end, usage with three (the end mark).
    "tgi_chat_stream_usage.json": {
        "model": "meta-llama/Llama-3.1-8B-Instruct", "error": "none", "finish_reason": "stop", "ttft_ms": 1000.0,
        "itl_ms": 10.0, "rt_ms": 1030.0, "tpot_ms": 15.0, "decode_tokens_per_s": 100.0, "input_tokens": 39,
        "output_tokens": 3,
    },
}  # fmt: skip
ANSWER, THINK = token_id({"token": "Answer"}), token_id({"token": "Think"})
WHOLE: dict[str, dict[str, Any]] = {
    "deepseek_chat.json": {
        "model": "deepseek-chat", "finish_reason": "length", "input_tokens": 13, "output_tokens": 300,
        "cached_tokens": 0,
    },
    "deepseek_logprobs_schema_example.json": {
        "model": "deepseek-chat", "finish_reason": "stop", "input_tokens": 3, "output_tokens": 2, "cached_tokens": 1,
        "reasoning_tokens": 1, "top_token_ids": [ANSWER], "top_logprobs": [-0.2], "output_token_ids": [THINK, ANSWER],
    },
    "deepseek_reasoner.json": {
        "model": "deepseek-reasoner", "finish_reason": "stop", "input_tokens": 18, "output_tokens": 345,
        "cached_tokens": 0, "reasoning_tokens": 315,
    },
    "deepseek_tool_call.json": {
        "model": "deepseek-reasoner", "finish_reason": "tool_calls", "input_tokens": 339, "output_tokens": 92,
        "cached_tokens": 320, "reasoning_tokens": 48,
    },
    "groq_chat.json": {
        "model": "llama-3.3-70b-versatile", "finish_reason": "stop", "input_tokens": 45, "output_tokens": 607,
        "queue_ms": 41.876985, "prefill_ms": 1.954727, "itl_ms": 2245.177008 / 607,
        "decode_tokens_per_s": 607 / 2.245177008,
    },
    "llamacpp_timings_cached_turn.json": {
        "input_tokens": 237, "output_tokens": 35, "cached_tokens": 236, "prefill_ms": 30.958,
        "itl_ms": 18.887542857142858, "decode_tokens_per_s": 52.94494935437416,
    },
    "ollama_generate_final.json": {
        "model": "llama3.2", "input_tokens": 26, "output_tokens": 259, "prefill_ms": 130.079,
        "ttft_ms": 6338.219291 + 130.079, "itl_ms": 4232.71 / 259, "decode_tokens_per_s": 259 / 4.23271,
    },
    "qwen_alibaba_chat.json": {
        "model": "qwen3-max", "finish_reason": "stop", "input_tokens": 18, "output_tokens": 1064, "cached_tokens": 0,
    },
    "tgi_deepseek_v2_details.json": {
        "finish_reason": "length", "output_tokens": 10,
        "output_token_ids": [185, 549, 1727, 3102, 317, 245, 3412, 344, 317, 1222],
    },
    "vllm_chat_0_11.json": {
        "model": "Qwen/Qwen3-0.6B", "finish_reason": "stop", "input_tokens": 15, "output_tokens": 87,
    },
    # No usage: 27 log-probabilities are 27 tokens; nothing names them.
    "vllm_legacy_token_logprobs.json": {"finish_reason": "stop", "output_tokens": 27},
    # 103.2 tokens/s is the whole answer over the whole time, no decode rate.
    "vllm_per_request_metrics.json": {
        "model": "meta-llama/Llama-3.1-8B-Instruct", "input_tokens": 42, "output_tokens": 128, "ttft_ms": 85.2,
        "queue_ms": 12.3, "itl_ms": 9.1, "decode_tokens_per_s": 1000 / 9.1,
    },
}  # fmt: skip
CONCURRENT = {  # four answers each, ten tokens long
    "tgi_llama_fp8_kv_cache_load.json": None,
    "tgi_llama_fp8_weights_load.json": [369, 279, 220, 679, 24, 12, 2366, 15, 2978, 1060],
    "tgi_mistral_load.json": [28747, 3169, 307, 327, 28705, 28740, 28734, 387, 28705, 28740],
}
OTHERS = {"README.md", "degenerate_outputs.jsonl", "llamacpp_prompt_progress.jsonl"}


def given(turn):
    """Give what a Turn holds, arrays as lists, without its session."""
    names = [name for name in turn.__slots__ if name not in ("session_id", "revision", "tenant", "__weakref__")]
    values = {name: getattr(turn, name) for name in names if not is_missing(getattr(turn, name))}
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in values.items()}


def check(turn, expected):
    """Compare every field; nothing else may be there."""
    found = given(turn)
    assert set(found) == set(expected)
    for name, value in expected.items():
        if isinstance(value, float):
            assert math.isclose(found[name], value, rel_tol=1e-9), name
        else:
            assert found[name] == (pytest.approx(value) if isinstance(value, list) else value), name


def play(path):
    """Feed one file to a recorder, event by event."""
    call = TurnRecorder(clock=lambda: 0.0).request("c-1")
    if path.suffix == ".sse":
        for number, event in enumerate(path.read_bytes().split(b"\n\n")):
            call.feed(event + b"\n\n", at=1.0 + number / 100)
    else:
        for number, chunk in enumerate(json.loads(path.read_bytes())):
            call.chunk(chunk, at=1.0 + number / 100)
    call.end()
    return call


def answered(body):
    """Feed one whole reply to a recorder."""
    call = TurnRecorder(clock=lambda: 0.0).request("c-1")
    call.response(body, at=2.5)
    return call


@pytest.mark.capability("issue 4 §1: every recorded reply of ../shared gives the Turn that was worked out by hand")
@pytest.mark.parametrize("name", STREAMS)
def test_stream(shared_data, name):
    """Latencies, tokens, cache, finish reason and error of a recorded stream."""
    call = play(shared_data / "responses" / name)
    check(call.turn(), {"pending_requests": 0, **STREAMS[name]})
    assert call.faults == ()


@pytest.mark.capability("issue 4 §1: every recorded reply of ../shared gives the Turn that was worked out by hand")
@pytest.mark.parametrize("name", WHOLE)
def test_whole_reply(shared_data, name):
    """What a recorded body says, and the host's own time for it."""
    call = answered((shared_data / "responses" / name).read_bytes())
    check(call.turn(), {**OPENAI, **WHOLE[name]})
    assert call.faults == ()


@pytest.mark.capability("issue 4 §1: every recorded reply of ../shared gives the Turn that was worked out by hand")
@pytest.mark.parametrize("name", CONCURRENT)
def test_concurrent_answers(shared_data, name):
    """Four answers of one server, each with its ten token ids."""
    bodies = json.loads((shared_data / "responses" / name).read_bytes())
    assert len(bodies) == 4
    for body in bodies:
        turn = given(answered(body).turn())
        assert (turn["finish_reason"], turn["output_tokens"], turn["error"]) == ("length", 10, "none")
        assert turn["output_token_ids"] == (CONCURRENT[name] or [t["id"] for t in body["details"]["tokens"]])


@pytest.mark.capability("issue 4 §1: every recorded reply of ../shared gives the Turn that was worked out by hand")
def test_prompt_progress(shared_data):
    """llama.cpp tells during the prefill how long the prompt is and what the cache holds of it."""
    lines = (shared_data / "responses" / "llamacpp_prompt_progress.jsonl").read_bytes().splitlines(keepends=True)
    found = []
    for line in lines:
        call = TurnRecorder(clock=lambda: 0.0).request("c-1")
        call.feed(line, at=1.0)
        call.end()
        found.append((call.turn().input_tokens, call.turn().cached_tokens, call.turn().error))
    assert found == [(237, 0, "server"), (237, 230, "server")]  # and then nothing came


@pytest.mark.capability("issue 4 §1: every recorded reply of ../shared gives the Turn that was worked out by hand")
def test_degenerate_outputs(shared_data):
    """Answers of broken servers are answers: their texts are judged elsewhere, and never kept here."""
    rows = (shared_data / "responses" / "degenerate_outputs.jsonl").read_text("utf-8").splitlines()
    expected = {"g1": ("length", 15, 128), "g2": ("length", 775, 256), "g4": None, "g5": None}
    for row in map(json.loads, rows):
        told = {name: row[name] for name in ("prompt_tokens", "completion_tokens") if name in row}
        choice = {"index": 0, "message": {"content": row["text"]}, "finish_reason": row.get("finish_reason")}
        turn = given(answered({"choices": [choice], "usage": told or None}).turn())
        wanted = expected.pop(row["id"])
        values = dict(zip(("finish_reason", "input_tokens", "output_tokens"), wanted or (), strict=False))
        assert turn == {**OPENAI, **values}
    assert expected == {}


def test_no_file_is_left_out(shared_data):
    """Every file of the folder stands in one of the tables."""
    files = {path.name for path in (shared_data / "responses").iterdir()}
    assert files == {*STREAMS, *WHOLE, *CONCURRENT, *OTHERS}
