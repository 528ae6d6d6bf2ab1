"""The actions on the context, as ``decision.apply`` carries them out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stabilitykit.mitigations.context.index import ContextIndex
from stabilitykit.mitigations.context.messages import SYSTEM, last_user, role_of
from stabilitykit.mitigations.context.reset import reset
from stabilitykit.mitigations.context.scoring import Policy
from stabilitykit.mitigations.context.summary import is_anchor, make_anchor
from stabilitykit.mitigations.context.trim import trim
from stabilitykit.mitigations.directives import InsertSummary, ResetContext, TrimContext
from stabilitykit.mitigations.outcome import Lent, Message, Outcome

__all__ = ["insert_summary", "reset_context", "trim_context"]


def trim_context(messages: Sequence[Message], asked: TrimContext, lent: Lent) -> Outcome:
    """Trim to a share of the context window; the rule that asked is the high-water mark, the share the low one."""
    if not lent.context_window_tokens:
        return Outcome(messages, False, {"why": "no context window is known"})
    policy = Policy(
        low_water=1.0,
        anchors=int(asked.anchors),
        summary_tokens=InsertSummary().budget if asked.summary else 0,
    )
    budget = int(asked.budget * lent.context_window_tokens)
    index = ContextIndex(lent.count_tokens, embed=lent.embed)
    done = trim(messages, budget, policy=policy, index=index, summarise=lent.summarise)
    details: dict[str, Any] = {
        "budget_tokens": budget,
        "tokens_before": done.tokens_before,
        "tokens_after": done.tokens_after,
        "dropped_messages": done.dropped,
        "prefix_tokens": done.prefix_tokens,
        "is_fit": done.is_fit,
    }
    if done.tokens_after >= done.tokens_before:
        return Outcome(messages, False, {**details, "why": "it fits" if done.is_fit else "nothing may be dropped"})
    return Outcome(done.messages, True, details)


def insert_summary(messages: Sequence[Message], asked: InsertSummary, lent: Lent) -> Outcome:
    """Put a summary of all before the last user message behind the system prompt; it replaces an earlier one.

    Of a known window it takes at most half of what is free, so that the next turn still fits.
    """
    index = ContextIndex(lent.count_tokens)
    upto = last_user(messages, [is_anchor(m) for m in messages])
    told = [m for m in messages[: max(upto, 0)] if role_of(m) not in SYSTEM]
    budget = int(asked.budget)
    if lent.context_window_tokens:
        size = [(index.count(m), is_anchor(m)) for m in messages]
        free = lent.context_window_tokens - sum(tokens for tokens, is_old in size if not is_old)
        had = sum(tokens for tokens, is_old in size if is_old)  # a new one need not be smaller
        budget = min(budget, max(free // 2, had))
    anchor = make_anchor(told, budget, index, lent.summarise)
    if anchor is None:
        return Outcome(messages, False, {"why": "there is nothing to summarise in so few tokens"})
    rest = [m for m in messages if not is_anchor(m)]
    at = next((k for k, m in enumerate(rest) if role_of(m) not in SYSTEM), len(rest))
    return Outcome([*rest[:at], anchor, *rest[at:]], True, _sizes(index, messages, [*rest, anchor], 0))


def reset_context(messages: Sequence[Message], asked: ResetContext, lent: Lent) -> Outcome:
    """Keep the system prompt and the latest turns."""
    left = reset(messages, int(asked.keep_turns))
    if len(left) == len(messages):
        return Outcome(messages, False, {"why": "there is nothing to drop"})
    index = ContextIndex(lent.count_tokens)
    return Outcome(left, True, _sizes(index, messages, left, len(messages) - len(left)))


def _sizes(index: ContextIndex, before: Sequence[Message], after: Sequence[Message], dropped: int) -> dict[str, Any]:
    return {
        "tokens_before": sum(map(index.count, before)),
        "tokens_after": sum(map(index.count, after)),
        "dropped_messages": dropped,
    }
