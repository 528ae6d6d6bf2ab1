"""A prepared text as an OpenAI-style reply, whole or as a stream."""

from __future__ import annotations

import json
from typing import Any

import attrs

__all__ = ["Asked", "canned_completion", "canned_events"]


@attrs.frozen
class Asked:
    """What the request asked for: the model's name, and whether the reply is a stream."""

    model: str = ""
    is_stream: bool = False

    @classmethod
    def from_body(cls, body: bytes) -> Asked:
        """Read a request's body; one that is no JSON object asks for a whole reply."""
        try:
            request = json.loads(body)
        except (ValueError, RecursionError):
            return cls()
        if not isinstance(request, dict):
            return cls()
        model = request.get("model")
        return cls(model if isinstance(model, str) else "", request.get("stream") is True)


def canned_completion(text: str, model: str, created: int) -> bytes:
    """Give the body of a ``chat.completion``."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    return json.dumps({**_head("chat.completion", model, created), "choices": [choice], "usage": usage}).encode()


def canned_events(text: str, model: str, created: int) -> bytes:
    """Give the same as server-sent events."""
    head = _head("chat.completion.chunk", model, created)
    deltas: list[tuple[dict[str, Any], str | None]] = [({"role": "assistant", "content": text}, None), ({}, "stop")]
    chunks = [{**head, "choices": [{"index": 0, "delta": d, "finish_reason": end}]} for d, end in deltas]
    return b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks) + b"data: [DONE]\n\n"


def _head(kind: str, model: str, created: int) -> dict[str, Any]:
    return {"id": "chatcmpl-canned", "object": kind, "created": created, "model": model}
