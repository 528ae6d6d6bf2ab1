"""Write the conversation's state into the messages: ``inject_state_tokens``.

Every user message gets the marks of a turn, the last one the state as well; the system message gets the legend where
one is needed. What users, models and tools wrote is neutralised first. Doing it twice is doing it once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from stabilitykit.errors import UsageError
from stabilitykit.mitigations.context.index import ContextIndex
from stabilitykit.mitigations.context.messages import SYSTEM
from stabilitykit.mitigations.directives import InjectStateTokens
from stabilitykit.mitigations.outcome import Lent, Message, Outcome
from stabilitykit.mitigations.state_tokens.grammar import (
    Form,
    legend,
    render_state,
    render_turn,
    without_legend,
    without_marks,
)
from stabilitykit.mitigations.state_tokens.neutralise import neutralise

__all__ = ["Injected", "inject_state", "inject_state_tokens"]


@attrs.frozen
class Injected:
    """Messages with the state in them.

    Parameters
    ----------
    messages
        A new list; messages that did not change are the given ones.
    neutralised
        Marks in the text of users, models and tools that were made harmless.
    """

    messages: list[Message]
    neutralised: int


def inject_state(messages: Sequence[Message], values: Mapping[str, str], form: Form, nonce: str = "") -> Injected:
    """Mark the turns of a conversation and write its state behind the last user message.

    Parameters
    ----------
    messages
        OpenAI-style; contents that are neither text nor a list of parts stay as they are.
    values
        The state; empty: marks alone.
    form
        ``readable`` or ``compact``.
    nonce
        See ``grammar.render_state``.

    Raises
    ------
    UsageError
        A message that is no mapping, or what ``grammar.render_state`` refuses.
    """
    _check_messages(messages)
    render_state(values, form, nonce)  # refuses what it cannot write, also where no user message would carry it
    last = max((k for k, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    done: list[Message] = []
    count = 0
    for k, message in enumerate(messages):
        if message.get("role") in SYSTEM:
            done.append(message)
            continue
        texts = _texts(message)
        is_user = message.get("role") == "user"
        safe, marks = neutralise(without_marks(texts) if is_user else texts)
        count += marks
        if is_user:
            head, tail = render_turn(values if k == last and values else None, form, nonce)
            message = _with_texts(message, safe, head, tail)
        elif marks:
            message = _with_texts(message, safe)
        done.append(message)
    return Injected(_with_legend(done, legend(list(values), form, nonce) if values else ""), count)


def inject_state_tokens(messages: Sequence[Message], asked: InjectStateTokens, host: Lent) -> Outcome:
    """Carry out the action: the values are those that the host lends."""
    form: Form = asked.format
    values = {str(name): str(value) for name, value in host.values.items()}
    if not values:
        return Outcome(messages, False, {"why": "no values lent"})
    users = [message for message in messages if message.get("role") == "user"]
    if not users:
        return Outcome(messages, False, {"why": "no user message"})
    if not isinstance(users[-1].get("content"), (str, list)):
        return Outcome(messages, False, {"why": "the last user message holds no text that could carry the state"})
    found = inject_state(messages, values, form, host.nonce)
    count = ContextIndex(host.count_tokens).count
    details = {
        "format": form,
        "slots": len(values),
        "neutralised": found.neutralised,
        "tokens_before": sum(map(count, messages)),
        "tokens_after": sum(map(count, found.messages)),
    }
    return Outcome(found.messages, True, details)


def _check_messages(messages: Any) -> None:
    if not isinstance(messages, Sequence) or not all(isinstance(message, Mapping) for message in messages):
        raise UsageError("messages are a list of mappings, each with a role and a content")


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and isinstance(part.get("text"), str)


def _texts(message: Message) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content if _is_text(part)] if isinstance(content, list) else []


def _with_texts(message: Message, texts: list[str], head: str = "", tail: str = "") -> Message:
    """Give the message with other texts, in their order, and marks around them."""
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": head + texts[0] + tail}
    if not isinstance(content, list):
        return message
    left = iter(texts)
    parts = [{**part, "text": next(left)} if _is_text(part) else part for part in content]
    parts = [part for part in parts if not (_is_text(part) and part["text"] == "")]
    around = [[{"type": "text", "text": mark}] if mark else [] for mark in (head, tail)]
    return {**message, "content": [*around[0], *parts, *around[1]]}


def _with_legend(messages: list[Message], line: str) -> list[Message]:
    """Put the legend at the end of the first system message, in place of an earlier one."""
    at = next((k for k, message in enumerate(messages) if message.get("role") in SYSTEM), None)
    if at is None:
        return [{"role": "system", "content": line}, *messages] if line else messages
    message = messages[at]
    texts = _texts(message)
    if not texts:
        return messages
    bare = [*texts[:-1], without_legend(texts[-1])]
    kept = _with_texts(message, bare)
    if line and isinstance(message.get("content"), str):
        kept = {**message, "content": f"{bare[0]}\n{line}" if bare[0] else line}
    elif line:
        kept = {**kept, "content": [*kept["content"], {"type": "text", "text": line}]}
    return [*messages[:at], message if kept == message else kept, *messages[at + 1 :]]
