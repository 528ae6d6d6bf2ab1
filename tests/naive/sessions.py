"""The identity of a turn: is it the next one, the same again, or an old one?"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import attrs

from stabilitykit.decision import Receipt
from stabilitykit.errors import TurnError, UnknownSignal
from stabilitykit.rules.pack import Pack
from stabilitykit.signals import CATALOGUE
from stabilitykit.turn import Turn
from tests.naive.scopes import Instance
from tests.naive.values import judge

__all__ = ["Identity", "Session", "check", "identify", "receipt_of"]

Faults = set[tuple[str, str]]


class Identity(enum.Enum):
    """What a turn is to its session."""

    ACCEPTED = "accepted"
    SAME = "same"
    CONFLICT = "conflict"
    STALE = "stale"


@attrs.define
class Session:
    """One conversation: its memory, and its last accepted turn."""

    instance: Instance
    turn_id: int | None = None
    content: Any = None
    outcome: Any = None
    model: str | None = None
    input_before: float | None = None

    def next_id(self, turn: Turn) -> int:
        """Give the number of a turn, issued when the host gave none."""
        if turn.turn_id is not None:
            return turn.turn_id
        return 1 if self.turn_id is None else self.turn_id + 1

    def is_other_model(self, model: str | None) -> bool:
        """Tell whether a turn was served by another model than the last known one."""
        return model is not None and self.model is not None and model != self.model

    def accept(self, turn: Turn, content: Any) -> None:
        """Make a turn the last accepted one."""
        self.turn_id, self.content = self.next_id(turn), content
        self.model = self.model if turn.model is None else turn.model
        tokens = judge(CATALOGUE["input_tokens"], turn.input_tokens)[0]
        self.input_before = tokens if isinstance(tokens, float) else None


def check(turn: Any, pack: Pack) -> Callable[[str], Any]:
    """Refuse misuse; give the reader of the turn's signals."""
    if not isinstance(turn, Turn):
        raise TurnError("no Turn")
    session_id: Any = turn.session_id
    if not isinstance(session_id, str) or len(session_id.encode()) > 128:
        raise TurnError("session_id: a text of at most 128 bytes")
    number: Any = turn.turn_id
    if number is not None and (not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**63):
        raise TurnError("turn_id: a whole number from 0 below 2**63")
    revision: Any = turn.revision
    if not isinstance(revision, int):
        raise TurnError("revision: a whole number")
    receipt: Any = turn.applied
    if receipt is not None and not isinstance(receipt, Receipt):
        raise TurnError("applied: a Receipt")
    extra = turn.extra or {}
    for name in extra:
        if name not in pack.signals:
            raise UnknownSignal(name)
    return lambda name: extra.get(name) if name in pack.signals else getattr(turn, name)


def identify(session: Session, turn: Turn, content: Any) -> tuple[Identity, Faults]:
    """Compare a turn with the last accepted one of its session."""
    last, number = session.turn_id, session.next_id(turn)
    if last is None or number == last + 1:
        return Identity.ACCEPTED, set()
    if number > last:
        return Identity.ACCEPTED, {("turn_gap", "")}
    if number < last:
        return Identity.STALE, set()
    if content == session.content:
        return Identity.SAME, set()
    is_newer = turn.revision > session.content[0]
    return (Identity.ACCEPTED if is_newer else Identity.CONFLICT), set()


def receipt_of(turn: Turn, session: Session) -> tuple[set[str], Faults]:
    """Give the actions that the host says it carried out, if it can have been told to."""
    receipt = turn.applied
    if receipt is None:
        return set(), set()
    is_theirs = receipt.session_id != turn.session_id or receipt.tenant != turn.tenant
    if is_theirs or session.turn_id is None or receipt.turn_id > session.turn_id:
        return set(), {("receipt_unknown", "")}
    return set(receipt.done), set()
