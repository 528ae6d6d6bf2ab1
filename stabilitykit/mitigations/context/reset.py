"""Start a conversation afresh: the system prompt, and the latest turns."""

from __future__ import annotations

from collections.abc import Sequence

from stabilitykit.mitigations.context.messages import SYSTEM, role_of
from stabilitykit.mitigations.context.summary import is_anchor
from stabilitykit.mitigations.outcome import Message

__all__ = ["reset"]


def reset(messages: Sequence[Message], keep_turns: int = 1) -> list[Message]:
    """Keep the system messages and the latest turns: each a user message with all that follows it.

    A user message that still waits for its answer stays in any case, for without it nothing could be asked.

    Examples
    --------
    >>> chat = [{"role": r, "content": ""} for r in ("system", "user", "assistant", "user", "assistant", "user")]
    >>> [m["role"] for m in reset(chat, 2)], [m["role"] for m in reset(chat, 0)]
    (['system', 'user', 'assistant', 'user'], ['system', 'user'])
    """
    turns = [k for k, m in enumerate(messages) if role_of(m) == "user" and not is_anchor(m)]
    is_waiting = bool(turns) and role_of(messages[-1]) != "assistant"
    wanted = max(keep_turns, int(is_waiting))
    start = turns[-min(wanted, len(turns))] if turns and wanted else len(messages)
    return [m for k, m in enumerate(messages) if (k >= start and not is_anchor(m)) or role_of(m) in SYSTEM]
