"""Text and engine state of one conversation, kept and rolled back together.

After a rollback the engine is, bit for bit, what it was after that turn: the turns since then never were. A cooldown
that began in them never began either; a host that must not go round in circles counts its rollbacks.

Examples
--------
>>> from stabilitykit import Engine, Turn
>>> engine = Engine.load("chat")
>>> kept = SessionSnapshots(engine, "c-1")
>>> chat = []
>>> for k in range(3):
...     chat.append({"role": "user", "content": f"message {k}"})
...     _ = engine.evaluate(Turn(session_id="c-1", itl_ms=30.0 + k))
...     _ = kept.take(chat)
>>> kept.rollback(turns=2)
[{'role': 'user', 'content': 'message 0'}]
>>> engine.evaluate(Turn(session_id="c-1", itl_ms=30.0)).turn_id
2
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from stabilitykit.decision import Decision, Receipt
from stabilitykit.engine.engine import Engine
from stabilitykit.engine.transfer import read_blob
from stabilitykit.errors import BlobError, UsageError
from stabilitykit.mitigations.outcome import Message
from stabilitykit.mitigations.snapshots import Snapshot, SnapshotRing

__all__ = ["SessionSnapshots"]


class SessionSnapshots:
    """The ring of one session; for one thread at a time, as its turns are.

    Parameters
    ----------
    engine, session_id, tenant
        Whose state is kept.
    ring
        Where they are kept; None: a new ring with its defaults.
    """

    def __init__(self, engine: Engine, session_id: Any, *, tenant: Any = "", ring: SnapshotRing | None = None) -> None:
        self._engine, self._key = engine, (tenant, session_id)
        self.ring = SnapshotRing() if ring is None else ring

    def take(self, messages: Sequence[Message], vectors: ArrayLike = ()) -> bool:
        """Keep text and engine state after the turn just evaluated; False when it is too large to keep.

        Raises
        ------
        UsageError
            No such session, or messages that are not JSON.
        """
        blob = self._engine.export(self._key[1], tenant=self._key[0])
        return self.ring.take(read_blob(blob)[0]["last"], messages, blob, vectors)

    def rollback(self, turns: int = 1) -> list[Message]:
        """Go back so many turns before the last one taken; gives the messages as they were.

        Raises
        ------
        UsageError
            That turn is not kept.
        BlobError
            The pack was reloaded since.
        """
        found = self.ring.back(turns)
        if found is None:
            raise UsageError("no snapshot of that turn is kept")
        self._go(found)
        return found.messages

    def apply(self, decision: Decision, messages: Sequence[Message], **lent: Any) -> tuple[list[Any], Receipt | None]:
        """Carry out a decision as ``decision.apply`` does, and roll the engine back with the text.

        Take the snapshot of the decision's turn first. After a rollback there is no receipt, for the engine knows
        nothing of the decision any more; where the pack was reloaded since, nothing is rolled back.
        """
        done, receipt = decision.apply(messages, snapshots=self.ring, **lent)
        if "rollback_snapshot" not in receipt.done:
            return done, receipt
        turns = next(a.params["turns"] for a in decision.actions if a.name == "rollback_snapshot")
        try:
            self.rollback(turns)
        except BlobError:
            return decision.apply(messages, **lent)
        return done, None

    def _go(self, snapshot: Snapshot) -> None:
        engine = self._engine
        with engine._door:
            before = engine.sessions.find(self._key)
            past = [one for one in (before and before.past) or () if one.last <= snapshot.turn_id]
        engine.restore(snapshot.state)
        with engine._door:
            after = engine.sessions.find(self._key)
            if after is not None and after.past is not None:
                after.past.extend(past)
        self.ring.forget_from(snapshot.turn_id + 1)
