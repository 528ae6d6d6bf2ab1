"""A streaming chat client that measures what a host can measure, and a scraper of the replica."""

from __future__ import annotations

import http.client
import json
import time
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Reply", "count_tokens", "post_json", "replica_sample", "slot_window", "stream_chat"]

_TIMEOUT_S = 120.0
_TOP_K = 20


@dataclass
class Reply:
    """One answer as the client saw it; what the server did not say stays ``None``.

    Parameters
    ----------
    sent_s
        ``time.perf_counter`` when the request was written.
    http_status
        Status of the response.
    """

    sent_s: float
    http_status: int = 0
    end_s: float = 0.0
    text: str = ""
    chunks: list[tuple[float, int]] = field(default_factory=list)
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    timings: dict[str, Any] | None = None
    top: list[dict[str, Any]] | None = None
    error_type: str | None = None

    def ttft_ms(self) -> float | None:
        """Request sent to the first chunk with content."""
        return 1e3 * (self.chunks[0][0] - self.sent_s) if self.chunks else None

    def gaps_ms(self) -> list[float]:
        """Gap before each token after the first chunk; a chunk of several tokens is divided."""
        gaps: list[float] = []
        for (before, _), (now, tokens) in zip(self.chunks, self.chunks[1:], strict=False):
            gaps += [1e3 * (now - before) / tokens] * tokens
        return gaps


def post_json(port: int, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Send one JSON request and give the JSON answer."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    try:
        link.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer: dict[str, Any] = json.loads(link.getresponse().read())
        return answer
    finally:
        link.close()


def count_tokens(port: int, messages: list[dict[str, str]]) -> int:
    """Count the tokens of the prompt that the server would render from the messages."""
    prompt = post_json(port, "/apply-template", {"messages": messages})["prompt"]
    asked = {"content": prompt, "add_special": True, "parse_special": True}
    return len(post_json(port, "/tokenize", asked)["tokens"])


def stream_chat(port: int, messages: list[dict[str, str]], max_tokens: int, seed: int) -> Reply:
    """Stream one chat completion and note the time of every chunk that holds content."""
    body = {
        "messages": messages, "max_tokens": max_tokens, "stream": True, "seed": seed, "temperature": 0.7,
        "stream_options": {"include_usage": True}, "logprobs": True, "top_logprobs": _TOP_K,
    }  # fmt: skip
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    try:
        link.connect()
        reply = Reply(sent_s=time.perf_counter())
        link.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
        response = link.getresponse()
        reply.http_status = response.status
        if response.status != 200:
            told = json.loads(response.read())
            reply.error_type = str(told.get("error", {}).get("type", "unknown"))
        else:
            _read_stream(response, reply)
        reply.end_s = time.perf_counter()
        return reply
    finally:
        link.close()


def _read_stream(response: http.client.HTTPResponse, reply: Reply) -> None:
    while line := response.readline():
        now = time.perf_counter()
        if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
            continue
        _read_chunk(json.loads(line[6:]), now, reply)


def _read_chunk(chunk: dict[str, Any], now: float, reply: Reply) -> None:
    reply.usage = chunk.get("usage") or reply.usage
    reply.timings = chunk.get("timings") or reply.timings
    if "error" in chunk:
        reply.error_type = str(chunk["error"].get("type", "unknown"))
    for choice in chunk.get("choices", ()):
        reply.finish_reason = choice.get("finish_reason") or reply.finish_reason
        content = choice.get("delta", {}).get("content")
        if not content:
            continue
        tokens = (choice.get("logprobs") or {}).get("content") or []
        if reply.top is None and tokens:
            reply.top = tokens[0]["top_logprobs"]
        reply.chunks.append((now, max(1, len(tokens))))
        reply.text += content


def _get(port: int, path: str) -> str:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    try:
        link.request("GET", path)
        return link.getresponse().read().decode()
    finally:
        link.close()


def slot_window(port: int) -> int:
    """Ask for the context window of one slot (the server rounds what it was told up to 256)."""
    return int(json.loads(_get(port, "/slots"))[0]["n_ctx"])


def replica_sample(port: int, replica: str) -> dict[str, Any]:
    """Scrape ``/metrics`` and ``/slots`` once and give one ``observe`` record."""
    metrics = dict(
        line.rsplit(" ", 1) for line in _get(port, "/metrics").splitlines() if line and not line.startswith("#")
    )
    slots = json.loads(_get(port, "/slots"))
    used = sum(int(slot.get("n_prompt_tokens", 0)) for slot in slots)
    room = sum(int(slot["n_ctx"]) for slot in slots)
    sample = {
        "replica": replica,
        "timestamp_s": round(time.time(), 3),
        "running_requests": int(float(metrics["llamacpp:requests_processing"])),
        "waiting_requests": int(float(metrics["llamacpp:requests_deferred"])),
        "kv_used_tokens": used,
        "kv_usage_ratio": round(used / room, 4),
    }
    return {"observe": sample}
