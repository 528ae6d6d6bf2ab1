"""What a server said in one reply, chunk by chunk or at once; none of its text is kept unless the host asks for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import attrs

from stabilitykit.decision import Fault
from stabilitykit.sources.openai.arrivals import Arrivals
from stabilitykit.sources.openai.dialects import drop_excess, said
from stabilitykit.sources.openai.fields import fields, items, number
from stabilitykit.sources.openai.outcomes import finish_reason_of, outcome_of
from stabilitykit.sources.openai.tokens import candidates, listed_tokens, token_id

__all__ = ["MOST_FAULTS", "MOST_TOKENS", "Piece", "Reply"]

MOST_TOKENS = 16_384
"""Token ids kept of one answer, the latest: a loop shows at the end."""
MOST_FAULTS = 16
_TEXTS = ("content", "reasoning_content", "reasoning", "thinking", "refusal", "text")
_LONGEST_NAME = 128


@attrs.frozen
class Piece:
    """One chunk that held tokens.

    Parameters
    ----------
    at_s
        When it came, in seconds of the recorder's clock.
    tokens
        How many it held; ``None``: the server does not say.
    text
        What it added to the answer; "" of reasoning and of tool calls.
    """

    at_s: float
    tokens: float | None
    text: str = attrs.field(repr=False)


class Reply:
    """Collects one reply.

    Parameters
    ----------
    pieces
        Where chunks are kept, their text included; ``None``: nowhere.

    Attributes
    ----------
    said
        Signals the server stated, by name; of repeated ones the latest.
    is_failed, error
        Whether there was an error, and its word (``None``: there is none for it).
    is_complete
        Whether the server said that the answer is at its end.
    has_reasoning
        Whether reasoning came as text (else its tokens have no chunks).
    """

    def __init__(self, arrivals: Arrivals, pieces: list[Piece] | None = None) -> None:
        self.arrivals = arrivals
        self.pieces = pieces
        self.said: dict[str, float] = {}
        self.model: str | None = None
        self.finish_reason: str | None = None
        self.error: str | None = None
        self.window: float | None = None
        self.is_failed = False
        self.is_complete = False
        self.is_truncated: bool | None = None
        self.held_tokens: float | None = None
        self.has_reasoning = False
        self.has_choices = False
        self.output_ids: deque[int] = deque(maxlen=MOST_TOKENS)
        self.faults: list[Fault] = []
        self._top: dict[str, list[tuple[int, float]]] = {}

    @property
    def top(self) -> list[tuple[int, float]]:
        """Candidates of the first token of the answer, of its reasoning where it has nothing else."""
        return self._top.get("content") or self._top.get("reasoning") or []

    def fault(self, detail: str, signal: str = "") -> None:
        """Note bad input; only so many are kept."""
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(Fault("invalid", signal, detail))

    def take(self, body: Mapping[str, Any], now_s: float | None, status: float | None = None) -> None:
        """Take one chunk (with its time) or a whole reply (with its HTTP status, where it is known) in."""
        choice = self._choice(body)
        if type(model := body.get("model")) is str and model:
            self.model = model[:_LONGEST_NAME]
        found: list[Fault] = []
        stated = said(body, found)
        for fault in found:
            self.fault(fault.detail, fault.signal)
        reasoning, content = listed_tokens(choice, body)
        self._keep_tokens(reasoning, content)
        if now_s is None:
            self.arrivals.counted_tokens += len(reasoning) + len(content)
        else:
            went_back = self.arrivals.went_back
            self.arrivals.event(now_s)
            if self.arrivals.went_back > went_back:
                self.fault("the clock went back", "itl_ms")
            if self._has_text(choice, body):
                tokens = self._count(len(reasoning) + len(content), stated)
                self.arrivals.token(now_s, tokens)
                if self.pieces is not None:
                    self.pieces.append(Piece(now_s, tokens, _answer_text(choice, body)))
        self.said.update(stated)
        for part, whole in drop_excess(self.said):
            self.fault(f"{part} of one chunk: more than {whole} of another", part)
        self._take_end(choice, body)
        error = body.get("error") or (body if body.get("object") == "error" else None)
        if error or (status is not None and status >= 400):
            self.failed(*outcome_of(number(fields(error).get("code")) if status is None else status, body))

    def failed(self, error: str | None, window: float | None) -> None:
        """Note an error: the first counts, a window is kept."""
        self.is_failed = True
        self.error = self.error or error
        self.window = self.window or window

    def _choice(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give the first choice; of several asked for only that one is followed."""
        for choice in items(body.get("choices")):
            given = fields(choice)
            if given.get("index", 0) in (0, None):
                return given
            self.has_choices = True
        return {}

    def _has_text(self, choice: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
        """Tell whether a chunk holds text: of the answer, of reasoning or of a tool call."""
        delta = _delta(choice, body)
        for place in (delta, choice, body, fields(body.get("token"))):
            for name in _TEXTS:
                if place.get(name):
                    self.has_reasoning |= name in ("reasoning_content", "reasoning", "thinking")
                    return True
        if body.get("response"):
            return True
        called = [*items(delta.get("tool_calls")), {"function": delta.get("function_call")}]
        functions = [fields(fields(call).get("function")) for call in called]
        return any(function.get("name") or function.get("arguments") for function in functions)

    def _count(self, listed: int, stated: Mapping[str, float]) -> float | None:
        """Give the tokens of a chunk with text: listed ones, else how far the server's own count has moved on."""
        if listed:
            return float(listed)
        now, before = stated.get("output_tokens"), self.said.get("output_tokens")
        if now is None or (before is None and self.arrivals.chunks):
            return None  # no count, or the final one on the last chunk with text
        if before is not None and now < before:
            self.fault(f"output tokens went from {before:g} to {now:g}", "output_tokens")
            return None
        return max(1.0, now - (before or 0.0))

    def _keep_tokens(self, reasoning: Any, content: Any) -> None:
        for part, listed in (("reasoning", reasoning), ("content", content)):
            if listed and part not in self._top:
                self._top[part] = candidates(listed[0])
            for token in listed[-MOST_TOKENS:]:
                if (which := token_id(token)) is not None:
                    self.output_ids.append(which)

    def _take_end(self, choice: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        given = (
            choice.get("finish_reason")
            or body.get("done_reason")
            or body.get("stop_type")
            or fields(body.get("details")).get("finish_reason")
        )
        if given == "insufficient_system_resource":
            self.failed("insufficient_resource", None)
        self.finish_reason = finish_reason_of(given) or self.finish_reason
        self.is_complete |= self.finish_reason is not None or body.get("done") is True or body.get("stop") is True
        if isinstance(truncated := body.get("truncated"), bool):
            self._take_truncated(truncated, number(body.get("tokens_cached")))

    def _take_truncated(self, truncated: bool, cached: float | None) -> None:
        """Tell a shifted context from an answer that was cut at the window: llama.cpp flags both.

        After a shift the cache holds less than prompt and answer; it never holds the last token.
        """
        held = self.said.get("input_tokens", 0.0) + self.said.get("output_tokens", 0.0) - 1.0
        self.is_truncated = truncated and (cached is None or cached < held)
        if self.is_truncated:
            self.held_tokens = cached


def _delta(choice: Mapping[str, Any], body: Mapping[str, Any]) -> Mapping[str, Any]:
    return fields(choice.get("delta") or choice.get("message") or body.get("message"))


def _answer_text(choice: Mapping[str, Any], body: Mapping[str, Any]) -> str:
    """Give what a chunk adds to the answer; Mistral lists parts, of which those of the answer have a ``text``."""
    delta = _delta(choice, body)
    given = delta.get("content") or choice.get("text") or body.get("content") or body.get("response")
    parts = [given] if isinstance(given, str) else [fields(part).get("text") for part in items(given)]
    return "".join(part for part in parts if isinstance(part, str))
