"""A message that stands for what was dropped, so that a trimmed conversation keeps its facts.

It is a user message, so that a user's words never gain the authority of the system prompt, and it is known by its name,
which hosts set and users cannot. A later trim replaces it by a summary of it and of what is dropped then: there is
never a second one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from stabilitykit.mitigations.context.choosing import by_score, fill
from stabilitykit.mitigations.context.index import ContextIndex
from stabilitykit.mitigations.context.messages import role_of, text_of
from stabilitykit.mitigations.context.pieces import pieces_of
from stabilitykit.mitigations.context.worth import log_worth
from stabilitykit.mitigations.outcome import Message

__all__ = ["ANCHOR_NAME", "extract", "is_anchor", "make_anchor"]

ANCHOR_NAME = "conversation_summary"
_HEAD = "[SUMMARY]\n"

Summarise = Callable[[Sequence[Message], int], str]


def is_anchor(message: Message) -> bool:
    """Tell whether a message is a summary that was put there by a trim."""
    if message.get("name") != ANCHOR_NAME:
        return False
    content = message.get("content")
    return isinstance(content, str) and content.startswith(_HEAD)


def _anchor(text: str) -> Message:
    return {"role": "user", "name": ANCHOR_NAME, "content": _HEAD + text}


def extract(messages: Sequence[Message], budget_tokens: int, index: ContextIndex | None = None) -> str:
    """Take the sentences that tell most for their tokens, whole and in their order, each line with its speaker.

    Examples
    --------
    >>> extract([{"role": "user", "content": "Hi! My cat is called Tofu. How are you?"}], 12)
    'user: My cat is called Tofu.'
    """
    lines: list[str] = []
    for message in messages:
        if is_anchor(message):
            lines += [line for line in str(message["content"])[len(_HEAD) :].split("\n") if line]
        elif role_of(message) in ("user", "assistant"):
            lines += [f"{role_of(message)}: {' '.join(p.split())}" for p in pieces_of(text_of(message)) if _is_prose(p)]
    lines = list(dict.fromkeys(lines))
    if not lines:
        return ""
    own = ContextIndex(index.count_tokens if index else None, message_tokens=1)
    own.sync([{"role": "user", "content": line} for line in lines])
    cost = own.tokens.tolist()
    kept: set[int] = set()
    fill(by_score(log_worth(own) - np.log(np.maximum(own.tokens, 1))), cost, budget_tokens, kept)
    return "\n".join(lines[k] for k in sorted(kept))


def _is_prose(piece: str) -> bool:
    return bool(piece.strip()) and not piece.lstrip().startswith(("```", "~~~"))


def make_anchor(
    dropped: Sequence[Message], budget_tokens: int, index: ContextIndex, summarise: Summarise | None = None
) -> Message | None:
    """Summarise what was dropped in at most so many tokens; None when nothing worth a line fits.

    A summariser of the host that fails, or does not keep to the budget, is replaced by the extractive default.
    """
    room = budget_tokens - index.count(_anchor(""))
    if room <= 0 or not dropped:
        return None
    if summarise is not None:
        try:
            made = _anchor(str(summarise(dropped, room)))
        except Exception:  # a mitigation never raises into the host's reply
            made = None
        if made is not None and index.count(made) <= budget_tokens:
            return made
    while room > 0:
        text = extract(dropped, room, index)
        if not text:
            return None
        made = _anchor(text)
        over = index.count(made) - budget_tokens  # a host's counter need not add up over lines
        if over <= 0:
            return made
        room -= over
    return None
