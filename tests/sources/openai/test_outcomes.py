from __future__ import annotations

import asyncio
import http.client
from types import SimpleNamespace

import pytest

from stabilitykit.sources.openai.outcomes import error_of, finish_reason_of, outcome_of

LONG = (
    "This model's maximum context length is {} tokens. However, you requested 131134 tokens (122942 in the messages)."
)
OVERFLOWS = {
    "OpenAI": (400, {"error": {"message": LONG.format(128000), "code": "context_length_exceeded"}}, 128000),
    "OpenAI, Responses API": (400, {"error": {"message": "Your input exceeds the context window of this"}}, None),
    "vLLM": (400, {"object": "error", "message": LONG.format(4096), "type": "BadRequestError", "code": 400}, 4096),
    "vLLM, newer": (400, {"error": {"message": "However, the model's context length is only 512 tokens"}}, 512),
    "vLLM, older": (400, {"message": "prompt (length 5000) is longer than the maximum model length of 4096."}, 4096),
    "SGLang": (
        400,
        {"message": "The input (61709 tokens) is longer than the model's context length (40960 tokens)."},
        40960,
    ),
    "SGLang, with the completion": (
        400,
        {"message": "Requested token count exceeds the model's maximum context length of 202752 tokens. You requested"},
        202752,
    ),
    "llama.cpp": (
        400,
        {"error": {"code": 400, "message": "request (631 tokens) exceeds the available context size (512 tokens), try",
                   "type": "exceed_context_size_error", "n_prompt_tokens": 631, "n_ctx": 512}},
        512,
    ),
    "llama.cpp, another text": (400, {"error": {"type": "exceed_context_size_error", "n_ctx": 256}}, 256),
    "TGI": (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 1244",
                  "error_type": "validation"}, 2048),
    "TGI, prompt alone": (422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 1168", 1024),
    "DeepSeek": (400, {"error": {"message": LONG.format(65536), "type": "invalid_request_error"}}, 65536),
    "xAI": (400, {"error": "This model's maximum prompt length is 131072 but the request contains 537812"}, 131072),
    "Moonshot": (400, {"error": {"message": "Your request exceeded model token limit: 8192"}}, 8192),
    "Ollama": (400, {"error": "the input length exceeds the context length"}, None),
    "any, as raw bytes": (400, LONG.format(4096).encode(), 4096),
}  # fmt: skip


@pytest.mark.capability("issue 4 §1: a context overflow of each server, with the window where the server tells it")
@pytest.mark.parametrize("server", OVERFLOWS)
def test_context_overflow(server):
    """The refusal of each server is one word, and its text gives the window."""
    status, body, window = OVERFLOWS[server]
    assert outcome_of(status, body) == ("context_overflow", window)


@pytest.mark.capability(
    "issue 4 §1: 429, insufficient_system_resource, timeouts, dead servers and cancelling are errors"
)
@pytest.mark.parametrize(
    ("status", "body", "word"),
    [
        (429, {"error": {"message": "slow down"}}, "rate_limited"),
        (413, {"error": {"message": "Request too large for model", "code": "rate_limit_exceeded"}}, "rate_limited"),
        (503, {"error": {"code": "insufficient_system_resource"}}, "insufficient_resource"),
        (408, None, "timeout"),
        (504, "<html>", "timeout"),
        (500, {"error": {"message": "CUDA error: out of memory"}}, "server"),
        (None, {"error": "generation failed", "error_type": "generation"}, "server"),
        (401, {"error": {"message": "no key"}}, None),
        (404, {"error": {"message": "no such model"}}, None),
        (400, {"error": {"message": "Expected 'messages' to be an array"}}, None),
    ],
)
def test_other_errors(status, body, word):
    """What went wrong; a request that was wrong itself says nothing of the conversation."""
    assert outcome_of(status, body) == (word, None)


class APIStatusError(Exception):
    """As the openai package's: status and parsed body as attributes."""

    status_code = 400
    body = {"message": LONG.format(4096)}  # noqa: RUF012


class HTTPStatusError(Exception):
    """As httpx': the status in the response."""

    response = SimpleNamespace(status_code=429)


class ReadTimeout(Exception):
    """As httpx'."""


@pytest.mark.capability(
    "issue 4 §1: 429, insufficient_system_resource, timeouts, dead servers and cancelling are errors"
)
@pytest.mark.parametrize(
    ("error", "found"),
    [
        (APIStatusError(), ("context_overflow", 4096.0, 400.0)),
        (HTTPStatusError(), ("rate_limited", None, 429.0)),
        (ReadTimeout(), ("timeout", None, None)),
        (TimeoutError(), ("timeout", None, None)),
        (ConnectionResetError(), ("server", None, None)),
        (http.client.IncompleteRead(b""), ("server", None, None)),
        (asyncio.CancelledError(), ("cancelled", None, None)),
        (GeneratorExit(), ("cancelled", None, None)),
        (ValueError("a mistake of the host"), ("cancelled", None, None)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_exceptions(error, found):
    """What clients raise, told apart without importing any of them."""
    assert error_of(error) == found


@pytest.mark.capability("issue 4 §1: finish reasons of every server")
@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("stop", "stop"),
        ("eos_token", "stop"),
        ("length", "length"),
        ("limit", "length"),
        ("function_call", "tool_calls"),
        ("content_filter", "content_filter"),
        ("insufficient_system_resource", "abort"),
        ("SAFETY", "content_filter"),
        ("repetition", "other"),
        ("none", None),
        ("", None),
        (None, None),
        (7, None),
    ],
)
def test_finish_reasons(said, word):
    """Every server's word in the words of the signal; what nobody knows is `other`, null is nothing."""
    assert finish_reason_of(said) == word
