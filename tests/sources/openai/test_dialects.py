from __future__ import annotations

from typing import Any

import pytest

from stabilitykit.decision import Fault
from stabilitykit.sources.openai.dialects import said

# One small sample of each server, after the structure of its real replies.
SAMPLES: dict[str, tuple[dict[str, Any], dict[str, float]]] = {
    "OpenAI": (
        {"usage": {
            "prompt_tokens": 2006, "completion_tokens": 300, "total_tokens": 2306,
            "prompt_tokens_details": {"cached_tokens": 1920, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 128, "accepted_prediction_tokens": 0},
        }},
        {"input_tokens": 2006, "output_tokens": 300, "cached_tokens": 1920, "reasoning_tokens": 128},
    ),
    "OpenAI, Responses API": (
        {"usage": {
            "input_tokens": 36, "output_tokens": 87, "total_tokens": 123, "input_tokens_details": {"cached_tokens": 12},
            "output_tokens_details": {"reasoning_tokens": 64},
        }},
        {"input_tokens": 36, "output_tokens": 87, "cached_tokens": 12, "reasoning_tokens": 64},
    ),
    "DeepSeek": (
        {"usage": {
            "prompt_tokens": 339, "completion_tokens": 92, "total_tokens": 431, "prompt_cache_hit_tokens": 320,
            "prompt_cache_miss_tokens": 19, "completion_tokens_details": {"reasoning_tokens": 48},
        }},
        {"input_tokens": 339, "output_tokens": 92, "cached_tokens": 320, "reasoning_tokens": 48},
    ),
    "DeepSeek, hit and miss only": (
        {"usage": {"prompt_cache_hit_tokens": 320, "prompt_cache_miss_tokens": 19}},
        {"input_tokens": 339, "cached_tokens": 320},
    ),
    "vLLM with per-request metrics": (
        {"usage": {"prompt_tokens": 42, "completion_tokens": 128, "prompt_tokens_details": None},
         "metrics": {"time_to_first_token_ms": 85.2, "queue_time_ms": 12.3, "mean_itl_ms": 9.1}},
        {"input_tokens": 42, "output_tokens": 128, "ttft_ms": 85.2, "queue_ms": 12.3, "itl_ms": 9.1},
    ),
    "llama.cpp": (
        {"usage": {"completion_tokens": 4, "prompt_tokens": 32, "prompt_tokens_details": {"cached_tokens": 31}},
         "timings": {"cache_n": 31, "prompt_n": 1, "prompt_ms": 31.0, "predicted_n": 4, "predicted_per_token_ms": 33.3,
                     "predicted_per_second": 30.0}},
        {"input_tokens": 32, "output_tokens": 4, "cached_tokens": 31, "prefill_ms": 31.0, "itl_ms": 33.3,
         "decode_tokens_per_s": 30.0},
    ),
    "llama.cpp, timings alone": (
        {"timings": {"cache_n": 236, "prompt_n": 1, "predicted_n": 1, "predicted_per_token_ms": 0.0}},
        {"input_tokens": 237, "cached_tokens": 236, "output_tokens": 1},
    ),
    "llama.cpp, /completion": (
        {"tokens_evaluated": 2, "tokens_predicted": 3, "tokens_cached": 4, "timings": {"cache_n": 1, "prompt_n": 1}},
        {"input_tokens": 2, "output_tokens": 3, "cached_tokens": 1},
    ),
    "llama.cpp, prefill in progress": (
        {"prompt_progress": {"total": 237, "cache": 230, "processed": 237, "time_ms": 30}},
        {"input_tokens": 237, "cached_tokens": 230},
    ),
    "Ollama": (
        {"done": True, "total_duration": 10_706_818_083, "load_duration": 6_338_219_291, "prompt_eval_count": 26,
         "prompt_eval_duration": 130_079_000, "eval_count": 100, "eval_duration": 4_000_000_000},
        {"input_tokens": 26, "output_tokens": 100, "prefill_ms": 130.079, "ttft_ms": 6468.298291, "itl_ms": 40.0,
         "rt_ms": 10706.818083},
    ),
    "TGI": (
        {"details": {"generated_tokens": 10, "prefill": [{"id": 1}, {"id": 2}, {"id": 3}]}},
        {"input_tokens": 3, "output_tokens": 10},
    ),
    "Groq": (
        {"usage": {"queue_time": 0.04, "prompt_tokens": 45, "prompt_time": 0.002, "completion_tokens": 600,
                   "completion_time": 2.4, "total_time": 2.402}},
        {"input_tokens": 45, "output_tokens": 600, "queue_ms": 40.0, "prefill_ms": 2.0, "itl_ms": 4.0, "rt_ms": 2402.0},
    ),
    "Groq, end of a stream": (
        {"choices": [], "x_groq": {"id": "r", "usage": {"prompt_tokens": 45, "completion_tokens": 600}}},
        {"input_tokens": 45, "output_tokens": 600},
    ),
    "xAI": (
        {"usage": {"prompt_tokens": 12, "completion_tokens": 2, "total_tokens": 354,
                   "prompt_tokens_details": {"cached_tokens": 11},
                   "completion_tokens_details": {"reasoning_tokens": 340}}},
        {"input_tokens": 12, "output_tokens": 342, "cached_tokens": 11, "reasoning_tokens": 340},
    ),
    "Moonshot": (
        {"choices": [{"index": 0, "usage": {"prompt_tokens": 9, "completion_tokens": 12, "cached_tokens": 8}}]},
        {"input_tokens": 9, "output_tokens": 12, "cached_tokens": 8},
    ),
    "Qwen": (
        {"usage": {"prompt_tokens": 295, "completion_tokens": 22, "prompt_tokens_details": {"cached_tokens": 256}}},
        {"input_tokens": 295, "output_tokens": 22, "cached_tokens": 256},
    ),
}  # fmt: skip


@pytest.mark.capability("issue 4 §1: usage, cached tokens and times of ten servers, wherever each puts them")
@pytest.mark.parametrize("server", SAMPLES)
def test_server(server):
    """What a server's reply says, in the units of the signals."""
    body, expected = SAMPLES[server]
    faults: list[Fault] = []
    assert said(body, faults) == pytest.approx(expected)
    assert faults == []


def test_silence_is_not_zero():
    """A chunk that says nothing gives nothing; a null usage is nothing."""
    assert said({"choices": [{"delta": {"content": "Hi"}}], "usage": None}, []) == {}


def test_what_is_no_number_is_a_located_fault():
    """A text, a bool, an infinity where a number belongs: the place is told, the rest is read."""
    faults: list[Fault] = []
    usage = {"prompt_tokens": "12", "completion_tokens": True, "prompt_tokens_details": {"cached_tokens": 1e999}}
    assert said({"usage": {**usage, "reasoning_tokens": 3}}, faults) == {"reasoning_tokens": 3}
    assert [fault.detail for fault in faults] == [
        "usage.prompt_tokens: no finite number",
        "usage.completion_tokens: no finite number",
        "usage.prompt_tokens_details.cached_tokens: no finite number",
    ]
    assert {fault.signal for fault in faults} == {"input_tokens", "output_tokens", "cached_tokens"}
