"""What the host lends to an action on messages, and what the action answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

__all__ = ["Lent", "Message", "Outcome"]

Message = Mapping[str, Any]


@attrs.frozen
class Lent:
    """What the host lends to ``decision.apply``; everything is optional.

    Parameters
    ----------
    context_window_tokens
        The window that budgets are shares of; the turn's own value where the host gives none here.
    count_tokens
        Tokens of a text. Without it: the documented estimate.
    summarise
        ``summarise(messages, budget_tokens) -> str``. Without it: the extractive default.
    embed
        ``embed(texts) -> one vector a text``, used for relevance when given.
    snapshots
        The ring that ``rollback_snapshot`` goes back in.
    values
        Named values of the conversation's state, for ``inject_state_tokens``.
    nonce
        Letters and digits that tell the marks of ``inject_state_tokens`` from imitations; "": none.
    """

    context_window_tokens: int | None = None
    count_tokens: Callable[[str], int] | None = None
    summarise: Callable[[Sequence[Message], int], str] | None = None
    embed: Callable[[Sequence[str]], Any] | None = None
    snapshots: Any = None
    values: Mapping[str, str] = attrs.field(factory=dict)
    nonce: str = ""


@attrs.frozen
class Outcome:
    """What one action did.

    Parameters
    ----------
    messages
        The new list; the given messages are never changed in place.
    is_done
        False when it could not act: then the action is not in the receipt's ``done``.
    details
        Figures for the receipt (tokens before and after, messages dropped, tokens of the preserved prefix), and
        ``why`` when it did not act. Never any message text.
    """

    messages: Sequence[Message]
    is_done: bool
    details: Mapping[str, Any]
