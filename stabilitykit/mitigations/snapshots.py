"""Earlier states of one conversation, and the way back: ``rollback_snapshot``.

A ring keeps the messages of the last turns, and bytes that belong to them: the engine's state (see
``stabilitykit.engine.snapshots``), or a host's own. The newest snapshot stands as it is, each older one as what
differs from the next newer, so that a conversation that only grows costs little more than once. What was given is
copied: a host may change its messages afterwards.

Examples
--------
>>> ring = SnapshotRing(keep=8)
>>> chat = [{"role": "user", "content": "Hello"}]
>>> ring.take(1, chat), ring.take(2, [*chat, {"role": "assistant", "content": "Hi"}])
(True, True)
>>> ring.back(1).messages == chat, ring.back(5)
(True, None)
"""

from __future__ import annotations

import json
import math
import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import attrs
from numpy.typing import ArrayLike

from stabilitykit.errors import UsageError
from stabilitykit.mitigations.directives import RollbackSnapshot
from stabilitykit.mitigations.outcome import Lent, Message, Outcome
from stabilitykit.mitigations.signature import signature, similarity
from stabilitykit.mitigations.whole_numbers import whole_number

__all__ = ["Packed", "Plain", "Snapshot", "SnapshotRing", "rollback_snapshot", "unpacked"]

_WINDOW = 32768
"""Bytes that zlib looks back."""


@attrs.frozen
class Snapshot:
    """A conversation as it was after a turn.

    Parameters
    ----------
    turn_id
        The turn.
    messages
        Copies, the caller's own.
    state
        The bytes given with them.
    """

    turn_id: int
    messages: list[Message]
    state: bytes


@attrs.frozen
class Plain:
    """The newest snapshot: each message as JSON."""

    turn_id: int
    texts: tuple[str, ...]
    state: bytes
    signature: bytes

    @property
    def nbytes(self) -> int:
        """Bytes it takes."""
        return sum(map(len, self.texts)) + len(self.state) + len(self.signature)


@attrs.frozen
class Packed:
    """An older one: how many messages at the start and the end are those of the next newer, and what else there is."""

    turn_id: int
    first: int
    last: int
    texts: bytes
    state: bytes
    signature: bytes

    @property
    def nbytes(self) -> int:
        """Bytes it takes."""
        return len(self.texts) + len(self.state) + len(self.signature)


class SnapshotRing:
    """Snapshots of one conversation, newest last; for one thread at a time.

    Parameters
    ----------
    keep
        Most snapshots held.
    max_bytes
        Most bytes they may take together; the oldest leave first.

    Attributes
    ----------
    newest, older, last
        What is kept, oldest first, and the turn that was taken last (kept or not).
    """

    def __init__(self, keep: int = 8, max_bytes: int = 1 << 20) -> None:
        self.keep = whole_number(keep, "keep, the snapshots of a ring,", 1)
        self.max_bytes = whole_number(max_bytes, "max_bytes", 1)
        self.newest: Plain | None = None
        self.older: deque[Packed] = deque()
        self.last = -1

    @property
    def turn_ids(self) -> tuple[int, ...]:
        """Turns that can be gone back to, oldest first."""
        kept: tuple[Packed | Plain, ...] = (*self.older, self.newest) if self.newest else ()
        return tuple(one.turn_id for one in kept)

    @property
    def nbytes(self) -> int:
        """Bytes that the snapshots take."""
        return sum(one.nbytes for one in self.older) + (self.newest.nbytes if self.newest else 0)

    def take(self, turn_id: int, messages: Sequence[Message], state: bytes = b"", vectors: ArrayLike = ()) -> bool:
        """Keep the conversation as it is after a turn; a turn taken again replaces what was kept from it on.

        Parameters
        ----------
        vectors
            What ``similarity`` compares: means of keys or values, float[layers, d], or an embedding, float[d].

        Returns
        -------
        bool
            False when it takes more than ``max_bytes`` alone, and was not kept.

        Raises
        ------
        UsageError
            Messages that are not JSON, a turn id or a state of another kind, vectors that are none; nothing has
            changed.
        """
        turn_id = whole_number(turn_id, "turn_id")
        fresh = Plain(turn_id, _texts(messages), _octets(state), signature(vectors))
        self.forget_from(turn_id)
        self.last = turn_id
        if fresh.nbytes > self.max_bytes:
            return False
        if self.newest is not None:
            self.older.append(_packed(self.newest, fresh))
        self.newest = fresh
        while self.older and (len(self.older) >= self.keep or self.nbytes > self.max_bytes):
            self.older.popleft()
        return True

    def back(self, turns: int = 1) -> Snapshot | None:
        """Give the latest snapshot that is at least so many turns before the last one taken; None: not kept."""
        turns = whole_number(turns, "turns")
        one, older = self.newest, list(self.older)
        while one is not None and one.turn_id > self.last - turns:
            one = unpacked(older.pop(), one) if older else None
        return None if one is None else Snapshot(one.turn_id, [json.loads(text) for text in one.texts], one.state)

    def forget_from(self, turn_id: int) -> None:
        """Drop the snapshots of a turn and of all later ones."""
        turn_id = whole_number(turn_id, "turn_id")
        while self.newest is not None and self.newest.turn_id >= turn_id:
            self.newest = unpacked(self.older.pop(), self.newest) if self.older else None
        self.last = self.newest.turn_id if self.newest else -1

    def similarity(self, vectors: ArrayLike) -> float:
        """Estimate the cosine between vectors and those of the newest snapshot, the least of the layers.

        Below .72 the source starts afresh instead of going back. NaN: no snapshot, or one without such vectors.
        """
        return similarity(self.newest.signature, signature(vectors)) if self.newest else math.nan


def rollback_snapshot(messages: Sequence[Message], asked: RollbackSnapshot, host: Lent) -> Outcome:
    """Carry out the action on the text alone, from the ring that the host lends; the ring stays as it is."""
    ring = host.snapshots
    if not isinstance(ring, SnapshotRing):
        return Outcome(messages, False, {"why": "no ring of snapshots lent"})
    found = ring.back(int(asked.turns))
    if found is None:
        return Outcome(messages, False, {"why": "no snapshot of that turn is kept"})
    details = {"turn_id": found.turn_id, "messages_before": len(messages), "messages_after": len(found.messages)}
    return Outcome(found.messages, True, details)


def _texts(messages: Any) -> tuple[str, ...]:
    if not isinstance(messages, Sequence):
        raise UsageError("messages are a list")
    return tuple(map(_text, messages))


def _octets(state: Any) -> bytes:
    if not isinstance(state, bytes | bytearray | memoryview):
        raise UsageError("a state is bytes")
    return bytes(state)


def _text(message: Any) -> str:
    try:
        text = json.dumps(message)
        if isinstance(message, Mapping) and json.loads(text) == message:
            return text
    except (TypeError, ValueError, RecursionError):
        pass
    raise UsageError("a message is not JSON: an object of plain values")


def _packed(older: Plain, newer: Plain) -> Packed:
    shorter = min(len(older.texts), len(newer.texts))
    first = _same(older.texts, newer.texts)
    last = min(_same(older.texts[::-1], newer.texts[::-1]), shorter - first)
    between = json.dumps(older.texts[first : len(older.texts) - last]).encode()
    texts, state = _deflated(between, b""), _deflated(older.state, newer.state)
    return Packed(older.turn_id, first, last, texts, state, older.signature)


def unpacked(older: Packed, newer: Plain) -> Plain:
    """Give an older snapshot as it was, from the next newer."""
    between = json.loads(_inflated(older.texts, b""))
    texts = (*newer.texts[: older.first], *between, *newer.texts[len(newer.texts) - older.last :])
    return Plain(older.turn_id, texts, _inflated(older.state, newer.state), older.signature)


def _same(first: Sequence[str], second: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def _deflated(data: bytes, like: bytes) -> bytes:
    packer = zlib.compressobj(zdict=like[-_WINDOW:])
    return packer.compress(data) + packer.flush()


def _inflated(data: bytes, like: bytes) -> bytes:
    return zlib.decompressobj(zdict=like[-_WINDOW:]).decompress(data)
