"""LangChain's messages, trimmed: the same guarantees, and the same message objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stabilitykit.errors import MissingExtra
from stabilitykit.mitigations.context import ContextIndex, Policy, trim
from stabilitykit.mitigations.context.summary import ANCHOR_NAME, Summarise

__all__ = ["trim_messages"]


def trim_messages(
    messages: Sequence[Any],
    budget_tokens: int,
    *,
    policy: Policy | None = None,
    query: str | None = None,
    index: ContextIndex | None = None,
    summarise: Summarise | None = None,
) -> list[Any]:
    """Trim a list of LangChain messages; see ``stabilitykit.mitigations.context.trim``.

    Messages that stay whole are the objects that were given; one of which some sentences stay is a copy.

    Raises
    ------
    MissingExtra
        langchain-core is not installed.
    """
    try:
        from langchain_core.messages import HumanMessage, convert_to_openai_messages
    except ImportError as missing:
        raise MissingExtra("langchain_core", "langchain") from missing
    plain = convert_to_openai_messages(list(messages))
    done = trim(plain, budget_tokens, policy=policy, query=query, index=index, summarise=summarise)
    places = iter(done.kept)
    found: list[Any] = []
    for message in done.messages:
        if message.get("name") == ANCHOR_NAME and message not in plain:
            found.append(HumanMessage(message["content"], name=ANCHOR_NAME))
            continue
        place = next(places)
        given, content = messages[place], message.get("content")
        is_whole = content == plain[place].get("content")
        found.append(given if is_whole else given.model_copy(update={"content": content}))
    return found
