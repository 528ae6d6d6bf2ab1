"""What is known of a conversation, kept between its trims: each message is read once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabilitykit.mitigations.context.identifiers import values_of
from stabilitykit.mitigations.context.messages import images_of, text_of
from stabilitykit.mitigations.context.scanning import COLUMNS, TOKENS, WORDS
from stabilitykit.mitigations.context.tokens import IMAGE_TOKENS, MESSAGE_TOKENS, estimate_tokens
from stabilitykit.mitigations.context.words import END_OF_MESSAGE, Vocabulary
from stabilitykit.mitigations.outcome import Message

__all__ = ["ContextIndex"]


class ContextIndex:
    """The words and token counts of a growing list of messages.

    A host may keep one per conversation and give it to every ``trim``: only messages that are new since the last call
    are read, and a cut stays where it was until the budget is used up again. Results are the same without it, but for
    that. Not to be shared between threads. The first one of a process loads the compiled reader, and compiles it where
    no cache has it: a host may make one before its first request.

    Parameters
    ----------
    count_tokens
        Tokens of a text; None: the estimate.
    message_tokens
        What the chat template adds around each message.
    embed
        ``embed(texts) -> one vector a text``; None: words only.
    """

    def __init__(
        self,
        count_tokens: Callable[[str], int] | None = None,
        *,
        message_tokens: int = MESSAGE_TOKENS,
        embed: Callable[[Sequence[str]], Any] | None = None,
    ) -> None:
        self.count_tokens, self.message_tokens, self.embed = count_tokens, message_tokens, embed
        self.cut: Any = None
        self._clear()

    def _clear(self) -> None:
        self.words = Vocabulary()
        self.texts: list[str] = []
        self._seen: list[Message] = []
        self.stems = np.empty(0, np.int32)
        self.counts = np.empty((0, COLUMNS), np.int32)
        self.tokens: NDArray[np.int64] = np.empty(0, np.int64)
        self._values: list[frozenset[str]] = []
        self._vectors: NDArray[np.float64] | None = None
        self.cut = None

    def sync(self, messages: Sequence[Message]) -> None:
        """Read what is new or changed."""
        given = list(messages[: len(self._seen)])
        if given != self._seen:
            same = (old == new for old, new in zip(self._seen, given, strict=False))
            self._forget(next((k for k, is_same in enumerate(same) if not is_same), len(given)))
        first = len(self.texts)
        new = messages[first:]
        if not new:
            return
        texts = list(map(_said, new))
        stems, counts = self.words.read(texts)
        own = counts[:, TOKENS] if self.count_tokens is None else [self._counted(text) for text in texts]
        images = np.fromiter(map(images_of, new), np.int64, len(new))
        self._seen += map(_copied, new)
        self.texts += texts
        self.stems = np.concatenate([self.stems, stems])
        self.counts = np.concatenate([self.counts, counts])
        self.tokens = np.concatenate([self.tokens, own + images * IMAGE_TOKENS + self.message_tokens])

    def _forget(self, first: int) -> None:
        """Drop all from a place on: a host edits its latest messages now and then."""
        self.counts, self.tokens = self.counts[:first], self.tokens[:first]
        self.stems = self.stems[: int(self.counts[:, WORDS].sum())]
        self.words.forget(int(self.stems.max(initial=-1)) + 1)
        del self.texts[first:], self._seen[first:], self._values[first:]
        self._vectors = None if self._vectors is None else self._vectors[:first]
        if self.cut is not None and self.cut.upto > first:
            self.cut = None

    def count(self, message: Message) -> int:
        """Give the tokens of a message that is not in the list."""
        text = _said(message)
        own = self._counted(text) if self.count_tokens else estimate_tokens(text)
        return own + images_of(message) * IMAGE_TOKENS + self.message_tokens

    def values(self, k: int) -> frozenset[str]:
        """Give the identifiers of a message, read when first asked for."""
        for text in self.texts[len(self._values) : k + 1]:
            self._values.append(values_of(text))
        return self._values[k]

    def vectors(self) -> NDArray[np.float64] | None:
        """Give a unit vector a message, f64[messages, dims]; None without a model."""
        if self.embed is None:
            return None
        known = 0 if self._vectors is None else len(self._vectors)
        if known < len(self.texts):
            new = self.embedded(self.texts[known:])
            self._vectors = new if self._vectors is None else np.concatenate([self._vectors, new])
        return self._vectors

    def embedded(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Ask the host's model, and give vectors of length one."""
        assert self.embed is not None
        rows = np.asarray(self.embed(list(texts)), np.float64).reshape(len(texts), -1)
        return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))

    def _counted(self, text: str) -> int:
        assert self.count_tokens is not None
        return max(0, int(self.count_tokens(text)))


def _copied(message: Message) -> Message:
    """Give a copy to compare with: hosts change messages in place, and parts and calls inside them."""
    is_flat = len(message) == 2 and type(message.get("content")) is str
    return dict(message) if is_flat else deepcopy(dict(message))


def _said(message: Message) -> str:
    text = text_of(message)
    return text.replace(END_OF_MESSAGE, " ") if END_OF_MESSAGE in text else text
