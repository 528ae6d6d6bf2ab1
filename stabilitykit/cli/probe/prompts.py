"""The prompts of a probe: one fixed set of multi-turn topics, named by the hash of its file."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.resources import files

import attrs

__all__ = ["PromptSet", "Topic", "shipped_prompts"]

Message = dict[str, str]


@attrs.frozen
class Topic:
    """What the user of one conversation says."""

    system: str
    user: tuple[str, ...]


@attrs.frozen
class PromptSet:
    """A set of topics.

    Parameters
    ----------
    name, sha256
        The set, and the hash of its file: figures are comparable when it is equal.
    warm_up
        The message of the request before the load.
    topics
        Conversation k has topic k, round and round.
    """

    name: str
    sha256: str
    warm_up: str
    topics: tuple[Topic, ...]

    def system(self, session: int) -> str:
        """Give the system prompt of a conversation; from the second round on it begins with a number of its own.

        Otherwise one conversation would be served from the cache of another.
        """
        text = self.topics[session % len(self.topics)].system
        return text if session < len(self.topics) else f"Conversation {session + 1}. {text}"

    def user(self, session: int, turn: int) -> str:
        """Give a message of a conversation; both numbers count from 0."""
        messages = self.topics[session % len(self.topics)].user
        return messages[turn % len(messages)]


@cache
def shipped_prompts() -> PromptSet:
    """Read the set that comes with the library: eight topics, Latin, Chinese, Japanese and Korean."""
    data = (files("stabilitykit") / "data" / "prompts" / "eight_topics.json").read_bytes()
    told = json.loads(data)
    topics = tuple(Topic(t["system"], tuple(t["user"])) for t in told["topics"])
    return PromptSet(told["name"], hashlib.sha256(data).hexdigest(), told["warm_up"], topics)
