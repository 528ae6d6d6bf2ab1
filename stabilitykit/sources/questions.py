"""Question marks in the user's message: a number that says much of a turn, and nothing of its text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stabilitykit.mitigations.context.messages import last_user, text_of

__all__ = ["count_questions", "user_questions"]

_MARKS = "?\uff1f\u061f"
"""ASCII, full-width, Arabic."""


def count_questions(text: str) -> int:
    """Count the question marks of a text.

    Examples
    --------
    >>> count_questions("Really? Where to?")
    2
    """
    return sum(map(text.count, _MARKS))


def user_questions(request: Any) -> int | None:
    """Count the question marks of the newest user message of a request.

    Parameters
    ----------
    request
        Messages, or a payload with ``messages``; anything else is unknown, and so is a request without a user message.

    Examples
    --------
    >>> user_questions({"messages": [{"role": "user", "content": "Is it open? I am near."}]})
    1
    """
    messages = request.get("messages") if isinstance(request, Mapping) else request
    if not isinstance(messages, list | tuple) or not all(isinstance(m, Mapping) for m in messages):
        return None
    at = last_user(messages)
    return None if at < 0 else count_questions(text_of(messages[at]))
