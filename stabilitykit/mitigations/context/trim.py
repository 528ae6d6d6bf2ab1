"""Trim a conversation to a budget of tokens: what the next answer needs stays, whole and in its order.

Examples
--------
>>> chat = [{"role": "system", "content": "Be brief."}]
>>> for day in range(40):
...     chat += [{"role": "user", "content": f"Day {day}: all is calm."}, {"role": "assistant", "content": "Noted."}]
>>> chat[9] = {"role": "user", "content": "My boat is called Marlin."}
>>> done = trim([*chat, {"role": "user", "content": "What is the name of my boat?"}], 120)
>>> done.is_fit, done.tokens_after <= 120, chat[9] in done.messages, done.messages[-1]["content"]
(True, True, True, 'What is the name of my boat?')
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import attrs
import numpy as np

from stabilitykit.mitigations.context.choosing import by_score, fill
from stabilitykit.mitigations.context.index import ContextIndex
from stabilitykit.mitigations.context.messages import (
    SYSTEM,
    Unit,
    is_plain,
    last_user,
    read_units,
    role_of,
    without_old_reasoning,
)
from stabilitykit.mitigations.context.results import Sized, keep_values
from stabilitykit.mitigations.context.scoring import Policy, fused, relevance_of
from stabilitykit.mitigations.context.shortening import shortened
from stabilitykit.mitigations.context.summary import Summarise, is_anchor, make_anchor
from stabilitykit.mitigations.outcome import Message

__all__ = ["Trimmed", "trim"]


@attrs.frozen
class Trimmed:
    """A list that fits, or the smallest legal one.

    Parameters
    ----------
    messages
        To send; the given list is not changed.
    kept
        Places in the given list of the messages that stayed, whole or in part.
    dropped
        How many messages nothing is left of.
    tokens_before, tokens_after
        By the counter of the index.
    prefix_tokens
        Tokens of the first messages that stand as they stood (in the last answer of the same index, else in the given
        list): what a prefix cache still holds.
    is_fit
        False when even the system prompt and the last user turn are over the budget; they are all that is left then.
    """

    messages: list[Message]
    kept: tuple[int, ...]
    dropped: int
    tokens_before: int
    tokens_after: int
    prefix_tokens: int
    is_fit: bool


class _Part(NamedTuple):
    """A message of the answer: its place in the given list (-1: a summary), and its tokens."""

    place: int
    message: Message
    tokens: int


@attrs.frozen
class _Cut:
    """What a cut left of the first ``upto`` messages, and all that was answered with it."""

    upto: int
    parts: tuple[_Part, ...]
    sent: tuple[_Part, ...] = ()


def trim(
    messages: Sequence[Message],
    budget_tokens: int,
    *,
    policy: Policy | None = None,
    query: str | None = None,
    index: ContextIndex | None = None,
    summarise: Summarise | None = None,
) -> Trimmed:
    """Trim a list of OpenAI-style messages.

    System messages and the last user message always stay; tool calls stay with their results, of which some members or
    sentences may be left out; code fences, sentences and members of JSON are never broken. Nothing is cut while the
    list fits; a cut goes down to the policy's low-water mark.

    Parameters
    ----------
    budget_tokens
        Never exceeded, unless ``is_fit`` says so.
    query
        What the next answer is about; None: the last user message.
    index
        Kept by the host per conversation, for speed and for cuts that stay; None: a new one.
    summarise
        ``summarise(dropped, budget_tokens) -> str`` of the host, for ``Policy(summary_tokens=...)``.
    """
    policy, index = policy or Policy(), index or ContextIndex()
    index.sync(messages)
    tokens = index.tokens.tolist()
    before = sum(tokens)
    known: _Cut | None = index.cut
    cut = _Cut(0, ())
    if before > budget_tokens:
        cut = known if known is not None else cut
        over = sum(p.tokens for p in cut.parts) + sum(tokens[cut.upto :]) > budget_tokens
        if not cut.upto or over or _parts_a_pair(cut, messages):
            cut = _Cut(len(messages), _cut(messages, budget_tokens, policy, query, index, summarise))
    parts = cut.parts + tuple(map(_Part, range(cut.upto, len(messages)), messages[cut.upto :], tokens[cut.upto :]))
    after = sum(p.tokens for p in parts)
    stood = messages if known is None else [p.message for p in known.sent]
    index.cut = attrs.evolve(cut, sent=parts)
    kept = tuple(p.place for p in parts if p.place >= 0)
    dropped = len(messages) - len(kept)
    prefix = _prefix_tokens(stood, parts)
    return Trimmed([p.message for p in parts], kept, dropped, before, after, prefix, after <= budget_tokens)


def _parts_a_pair(cut: _Cut, messages: Sequence[Message]) -> bool:
    """Tell whether an earlier cut dropped the call of a result that has come since."""
    left = [*(p.message for p in cut.parts), *messages[cut.upto :]]
    return not all(map(is_plain, left)) and any(u.is_broken for u in read_units(left))


def _prefix_tokens(stood: Sequence[Message], parts: Sequence[_Part]) -> int:
    found = 0
    for old, new in zip(stood, parts, strict=False):
        if old is not new.message and old != new.message:
            break
        found += new.tokens
    return found


@attrs.frozen
class _Job:
    """What a cut works on: the list, its old reasoning left out, in units with their tokens."""

    messages: Sequence[Message]
    tokens: list[int]
    units: list[Unit]
    cost: list[int]
    query: str
    asked: int
    policy: Policy
    index: ContextIndex


def _cut(
    messages: Sequence[Message],
    budget: int,
    policy: Policy,
    query: str | None,
    index: ContextIndex,
    summarise: Summarise | None,
) -> tuple[_Part, ...]:
    """Choose what stays of a list that is over the budget."""
    is_summary = [is_anchor(m) for m in messages]
    asked = last_user(messages, is_summary)
    bare = without_old_reasoning(messages, asked)
    known = index.tokens.tolist()
    tokens = [t if b is m else index.count(b) for b, m, t in zip(bare, messages, known, strict=True)]
    units = read_units(messages)
    cost = [tokens[u[0][0]] if len(u[0]) == 1 else sum(tokens[k] for k in u[0]) for u in units]
    own = index.texts[asked] if asked >= 0 else ""
    job = _Job(
        bare, tokens, units, cost, own if query is None else query, asked if query is None else -1, policy, index
    )

    first = [u.members[0] for u in units]
    kept = {k for k, m in enumerate(first) if m == asked or role_of(messages[m]) in SYSTEM}
    out = {k for k, u in enumerate(units) if u.is_broken or (policy.summary_tokens and is_summary[first[k]])}
    spent = sum(cost[k] for k in kept)
    free = max(budget - spent, 0)
    had = sum(tokens[k] for k in range(len(messages)) if is_summary[k])
    reserved = min(
        policy.summary_tokens, max(free // 4, min(had, free // 2))
    )  # facts of an earlier one have room again
    urgent = [
        k
        for k, m in enumerate(first)
        if is_summary[m] or (k == len(units) - 1 and cost[k] <= policy.last_share * budget)
    ]
    fill((k for k in urgent if k not in out), cost, budget - spent - reserved, kept)
    room = int(policy.low_water * budget) - reserved - sum(cost[k] for k in kept)
    made = _choose(job, room, kept, out) if room > 0 else {}

    places = sorted({m for k in kept for m in units[k].members}.union(made))
    parts = [_Part(m, *made.get(m, (bare[m], tokens[m]))) for m in places]
    if reserved:
        gone = [m for k, m in enumerate(messages) if k not in {p.place for p in parts}]
        summary = make_anchor(gone, min(policy.summary_tokens, budget - sum(p.tokens for p in parts)), index, summarise)
        if summary is not None:
            at = next((k for k, p in enumerate(parts) if role_of(p.message) not in SYSTEM), len(parts))
            parts.insert(at, _Part(-1, summary, index.count(summary)))
    return tuple(parts)


def _choose(job: _Job, room: int, kept: set[int], out: set[int]) -> dict[int, Sized]:
    """Fill the room: the window, then values where tools are called, else words; give what stays beside the units."""
    policy, units, cost = job.policy, job.units, job.cost
    window = min(policy.window_tokens, int(policy.window_share * room))
    for k in range(len(units) - 1, -1, -1):
        if k in kept or k in out:
            continue
        if cost[k] > window:
            break
        kept.add(k)
        window, room = window - cost[k], room - cost[k]
    has_tools = any(u.is_tool for u in units)
    if policy.scorer == "identifiers" or (policy.scorer == "auto" and has_tools):
        return keep_values(
            job.messages,
            job.tokens,
            units,
            job.index,
            room=room,
            kept=kept,
            out=out,
            weights=policy.identifier_weights,
            is_whole=policy.is_whole,
        )
    return _keep_fitting(job, room, kept, out)


def _keep_fitting(job: _Job, room: int, kept: set[int], out: set[int]) -> dict[int, Sized]:
    """Keep the anchors, then the best of the rest; then sentences of the best that did not fit."""
    policy, index, units, cost = job.policy, job.index, job.units, job.cost
    relevant = (
        np.zeros(len(index.texts)) if policy.is_blind else relevance_of(index, job.query, policy.scorer, job.asked)
    )
    starts = [u.members[0] for u in units]
    is_in = np.array([k not in out for k in range(len(units))])
    near = np.where(is_in, np.maximum.reduceat(relevant, starts), -np.inf)
    total = np.where(is_in, np.maximum.reduceat(fused(index, relevant, policy), starts), -np.inf)
    room = fill((k for k in by_score(near) if near[k] > 0), cost, room, kept, policy.anchors)
    order = [k for k in by_score(total) if k not in out]
    room = fill(order, cost, room, kept)
    for k in order:
        if k not in kept and len(units[k].members) == 1 and not units[k].is_tool:
            made = shortened(job.messages[starts[k]], room, index, job.query)
            return {} if made is None else {starts[k]: (made, index.count(made))}
    return {}
