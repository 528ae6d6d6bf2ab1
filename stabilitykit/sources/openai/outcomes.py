"""How an answer ended: finish reasons and errors of every server in the words of the signals.

Texts of errors are matched and thrown away. Context overflow, as servers say it:

- OpenAI, DeepSeek, Qwen, Groq: "maximum context length is 131072 tokens", code ``context_length_exceeded``
- vLLM: "This model's maximum context length is 4096 tokens. However, you requested ...", "the model's context length
  is only 4096 tokens", "longer than the maximum model length of 4096"
- SGLang: "The input (61709 tokens) is longer than the model's context length (40960 tokens)", "Requested token count
  exceeds the model's maximum context length of 202752 tokens"
- llama.cpp: "request (532 tokens) exceeds the available context size (512 tokens)", with ``n_ctx``
- TGI, HTTP 422: "`inputs` tokens + `max_new_tokens` must be <= 2048", "`inputs` must have less than 1024 tokens"
- xAI: "This model's maximum prompt length is 131072 but the request contains ..."
- Moonshot: "Your request exceeded model token limit: 8192"
- Ollama, where it refuses at all: "the input length exceeds the context length"

Examples
--------
>>> outcome_of(400, {"error": {"message": "This model's maximum context length is 4096 tokens. However, ..."}})
('context_overflow', 4096.0)
>>> outcome_of(429, {}), outcome_of(503, None), outcome_of(401, None)
(('rate_limited', None), ('server', None), (None, None))
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stabilitykit.sources.openai.fields import fields, number

__all__ = ["error_of", "finish_reason_of", "outcome_of"]

_FINISH = {
    "stop": "stop", "eos": "stop", "eos_token": "stop", "stop_sequence": "stop", "word": "stop", "end_turn": "stop",
    "length": "length", "limit": "length", "max_tokens": "length", "model_length": "length",
    "tool_calls": "tool_calls", "tool_call": "tool_calls", "function_call": "tool_calls", "tool_use": "tool_calls",
    "content_filter": "content_filter", "safety": "content_filter",
    "abort": "abort", "cancelled": "abort", "insufficient_system_resource": "abort",
    "error": "error", "network_error": "error",
}  # fmt: skip
_OVERFLOW = (
    re.compile(r"(?:maximum|max) (?:context|prompt) length (?:is|of) (\d+)", re.I),
    re.compile(r"longer than the model's context length \((\d+)", re.I),
    re.compile(r"exceeds the available context size(?: \((\d+) tokens\))?", re.I),
    re.compile(r"inputs`? tokens \+ `?max_new_tokens`? must be <= (\d+)", re.I),
    re.compile(r"inputs`? must have less than (\d+) tokens", re.I),
    re.compile(r"exceeded model token limit: ?(\d+)", re.I),
    re.compile(r"context length is only (\d+)|maximum model length of (\d+)", re.I),
    re.compile(r"input length exceeds (?:the )?(?:maximum )?context length|exceeds the context window", re.I),
)
_OVERFLOW_CODES = {"context_length_exceeded", "exceed_context_size_error"}
_MOST_TEXT = 4096
_TIMEOUTS = (408, 504)
_LINKS = re.compile(r"Connect|Disconnect|Protocol|Network|Transport|Incomplete|Payload|API")
"""In the names of what clients raise when a server goes away (httpx, aiohttp, http.client, requests, openai)."""


def finish_reason_of(value: object) -> str | None:
    """Translate a finish reason; a word nobody knows is ``other``, null and "" are nothing."""
    if not isinstance(value, str) or not value or value == "none":
        return None
    return _FINISH.get(value.lower(), "other")


def _texts(body: object) -> Iterator[str]:
    """Give the texts of an error body that name what happened."""
    if isinstance(body, bytes):
        body = body[:_MOST_TEXT].decode("utf-8", "replace")
    if isinstance(body, str):
        yield body[:_MOST_TEXT]
        return
    for part in (body, fields(body).get("error"), fields(body).get("detail")):
        if isinstance(part, str):
            yield part[:_MOST_TEXT]
        for name in ("message", "code", "type", "error_type"):
            if isinstance(text := fields(part).get(name), str):
                yield text[:_MOST_TEXT]


def outcome_of(status: float | None, body: object) -> tuple[str | None, float | None]:
    """Give the word of ``error`` and, of a context overflow, the window in tokens where the server says it.

    A request that was wrong itself (no right to ask, no such model) has no word and gives ``None``: it says nothing
    of the conversation; ``http_status`` tells it.

    Parameters
    ----------
    status
        HTTP status, of an error within a stream its ``code``.
    body
        The error body: parsed, or text.
    """
    texts = list(_texts(body))
    for text in texts:
        for pattern in _OVERFLOW:
            if found := pattern.search(text):
                window = next((float(group[:15]) for group in found.groups() if group), None)
                return "context_overflow", window or _window(body)
    if any(text in _OVERFLOW_CODES for text in texts):
        return "context_overflow", _window(body)
    if "insufficient_system_resource" in texts:
        return "insufficient_resource", None
    if status == 429 or any(text in ("rate_limit_exceeded", "rate_limit_error") for text in texts):
        return "rate_limited", None
    if status in _TIMEOUTS:
        return "timeout", None
    return (None if status is not None and 400 <= status < 500 else "server"), None


def _window(body: object) -> float | None:
    for part in (body, fields(body).get("error")):
        if (window := number(fields(part).get("n_ctx"))) is not None:
            return window
    return None


def error_of(exception: BaseException) -> tuple[str | None, float | None, float | None]:
    """Give the word of ``error``, the window in tokens and the HTTP status behind an exception of a client.

    Read by attribute, so that no client is imported: ``status_code`` and ``body`` of the openai package, of httpx
    ``response.status_code``.
    """
    names = {cls.__name__ for cls in type(exception).__mro__}
    if any("Timeout" in name for name in names):
        return "timeout", None, None
    status = number(getattr(exception, "status_code", None))
    if status is None:
        status = number(getattr(getattr(exception, "response", None), "status_code", None))
    if status is None and not isinstance(exception, OSError) and not any(_LINKS.search(name) for name in names):
        return "cancelled", None, None  # the host's own: the server did nothing wrong
    body = getattr(exception, "body", None)
    word, window = outcome_of(status, body if body is not None else str(exception))
    return word, window, status
