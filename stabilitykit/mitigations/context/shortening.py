"""Some whole sentences of a message that does not fit whole."""

from __future__ import annotations

from stabilitykit.mitigations.context.choosing import fill
from stabilitykit.mitigations.context.index import ContextIndex
from stabilitykit.mitigations.context.pieces import joined, pieces_of
from stabilitykit.mitigations.outcome import Message

__all__ = ["SMALLEST", "shortened"]

SMALLEST = 32
"""Tokens below which it is not worth it."""


def shortened(message: Message, room: int, index: ContextIndex, query: str) -> Message | None:
    """Keep the sentences and code fences that share most words with the query; None when none fits.

    Parameters
    ----------
    room
        Tokens of the shortened message, all included.
    """
    content = message.get("content")
    if not isinstance(content, str) or message.get("tool_calls") or room < SMALLEST:
        return None
    pieces = pieces_of(content)
    wanted = set(index.words.query(query)[0])
    shared = [len(wanted.intersection(index.words.query(piece)[0])) for piece in pieces]
    order = sorted(range(len(pieces)), key=lambda k: (-shared[k], k))
    each = index.count({"role": "user", "content": ""})
    cost = [index.count({"role": "user", "content": piece}) - each + 1 for piece in pieces]
    kept: set[int] = set()
    fill(order, cost, room - each, kept)
    while kept:
        made = {**message, "content": joined(pieces, kept)}
        if index.count(made) <= room:
            return made
        kept.remove(max(kept, key=order.index))  # a host's counter need not add up over sentences
    return None
