"""Where tools are called: what stays is what holds the values that the next call may need.

Of a long tool result the members or sentences that hold them may stay without the rest, so that more results, each with
its call, find room.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import attrs

from stabilitykit.mitigations.context.choosing import Part, cover
from stabilitykit.mitigations.context.identifiers import Mention, chance, gather, values_of
from stabilitykit.mitigations.context.index import ContextIndex
from stabilitykit.mitigations.context.messages import Unit, role_of
from stabilitykit.mitigations.context.outline import Outline, outline_of
from stabilitykit.mitigations.context.shortening import SMALLEST
from stabilitykit.mitigations.context.tokens import CJK
from stabilitykit.mitigations.outcome import Message

__all__ = ["keep_values", "said_in"]

_BIT = re.compile(rf"[{CJK}]|[^\W\d_{CJK}]{{1,8}}|\d{{1,3}}|[^\w\s]|_")
"""About a token; a host's counter, which may ask a server, sees whole messages only."""
Sized = tuple[Message, int]
"""A message and its tokens."""


class _Result(NamedTuple):
    """A result that may be shortened: its place in the list, and the part of its unit that is its first piece."""

    place: int
    outline: Outline
    first: int


@attrs.frozen
class _Units:
    """The units of a list in parts; part 0 of each is all that is not in a result that may be shortened."""

    messages: Sequence[Message]
    tokens: Sequence[int]
    units: Sequence[Unit]
    index: ContextIndex
    parts: list[list[Part]] = attrs.field(factory=list)
    results: list[list[_Result]] = attrs.field(factory=list)

    def add(self, unit: Unit, number: dict[str, int], is_whole: bool) -> None:
        """Divide one more unit."""
        parts = [Part(-1, 0.0, ())]
        results: list[_Result] = []
        cost, values = 0.0, set[str]()
        for k in unit.members:
            outline = None if is_whole or self.tokens[k] < SMALLEST else _outline(self.messages[k])
            if outline is None:
                cost += self.tokens[k]
                values |= self.index.values(k)
                continue
            results.append(_Result(k, outline, len(parts)))
            bare = self.index.message_tokens + 1  # with a mark for its content
            cost += bare
            rate = max(self.tokens[k] - bare, 1) / max(len(_BIT.findall(self.index.texts[k])), 1)
            for piece in outline.pieces:
                parent = 0 if piece.parent < 0 else results[-1].first + piece.parent
                size = len(_BIT.findall(piece.adds)) * rate
                parts.append(Part(parent, size, _numbers(values_of(piece.text), number)))
        parts[0] = Part(-1, max(cost, 1.0), _numbers(values, number))
        self.parts.append(parts)
        self.results.append(results)

    def write(self, u: int, taken: set[int]) -> dict[int, Sized]:
        """Give the messages of a unit of which these parts are taken, by their places."""
        if not taken:
            return {}
        made = {k: (self.messages[k], self.tokens[k]) for k in self.units[u].members}
        for place, outline, first in self.results[u]:
            kept = {k - first for k in taken if first <= k < first + len(outline.pieces)}
            if len(kept) < len(outline.pieces):
                message = {**self.messages[place], "content": outline.write(kept)}
                made[place] = (message, self.index.count(message))
        return made


def _outline(message: Message) -> Outline | None:
    content = message.get("content")
    if role_of(message) not in ("tool", "function") or not isinstance(content, str):
        return None
    outline = outline_of(content)
    return outline if len(outline.pieces) > 1 else None


def _numbers(values: set[str] | frozenset[str], number: dict[str, int]) -> list[int]:
    return sorted(number[v] for v in values if v in number)


def keep_values(
    messages: Sequence[Message],
    tokens: Sequence[int],
    units: Sequence[Unit],
    index: ContextIndex,
    *,
    room: int,
    kept: set[int],
    out: Collection[int],
    weights: Sequence[float],
    is_whole: bool,
) -> dict[int, Sized]:
    """Fill the room with the units, or parts of them, that hold most; give what stays, by its place.

    Parameters
    ----------
    kept, out
        Units that stay already, and units that must not.
    weights
        Of the chance of a value to be needed.
    is_whole
        Results are not shortened.
    """
    said = said_in(index, messages, units)
    number = {value: k for k, value in enumerate(said)}
    divided = _Units(messages, tokens, units, index)
    for u, unit in enumerate(units):
        divided.add(unit, number, is_whole or u in kept)
    taken = [set(range(len(parts))) if u in kept else set[int]() for u, parts in enumerate(divided.parts)]
    open_to = [[] if u in out and u not in kept else parts for u, parts in enumerate(divided.parts)]
    order = cover(open_to, chance(said, len(units), weights), room, taken)

    made = {u: divided.write(u, taken[u]) for u in dict.fromkeys(u for u, _ in order)}
    while order and (over := sum(size for one in made.values() for _, size in one.values()) - float(room)) > 0:
        changed: set[int] = set()
        while order and over > 0:  # what was taken last goes first: the pieces were estimates
            u, k = order.pop()
            taken[u].discard(k)
            changed.add(u)
            over -= divided.parts[u][k].cost
        made |= {u: divided.write(u, taken[u]) for u in changed}
    return {place: sized for one in made.values() for place, sized in one.items()}


def said_in(index: ContextIndex, messages: Sequence[Message], units: Sequence[Unit]) -> dict[str, Mention]:
    """Collect who said which value in which unit."""

    def who(k: int) -> str:
        role = role_of(messages[k])
        if role == "assistant" and messages[k].get("tool_calls"):
            return "argument"
        return role if role in ("user", "assistant") else "tool"

    return gather([[(who(k), index.values(k)) for k in unit.members] for unit in units])
