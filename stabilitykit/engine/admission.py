"""Is this a turn to take in? Identity, duplicates, gaps, change of model, receipts."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from stabilitykit.compiled import header as c
from stabilitykit.compiled.packing import gather
from stabilitykit.decision import ACTIONS, Decision, Fault, Receipt
from stabilitykit.engine.generation import Generation
from stabilitykit.engine.identity import check_id, check_number
from stabilitykit.engine.observing import Scopes
from stabilitykit.errors import TurnError, UnknownSignal, UsageError
from stabilitykit.rules.conditions.suggest import did_you_mean
from stabilitykit.session import Instance, Rows, Session, SessionStore
from stabilitykit.signals import CATALOGUE
from stabilitykit.turn import Turn

__all__ = ["Admission", "Admitted"]

_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
_REWRITES = frozenset(name for name, spec in ACTIONS.items() if spec.group == "context")


@attrs.frozen(eq=False)
class Admitted:
    """A turn ready to be stepped."""

    turn: Turn
    session: Session
    replica: Instance
    device: Instance
    flags: int
    skip: int
    values: list[float] | None
    faults: list[Fault]


class Admission:
    """Finds or creates the session of a turn and decides what the turn is.

    Parameters
    ----------
    sessions
        The store.
    snapshots
        Turns of each session kept for ``fork(at_turn=)``.
    """

    def __init__(self, sessions: SessionStore, snapshots: int) -> None:
        self._sessions = sessions
        self._snapshots = snapshots

    def admit(
        self,
        live: Generation,
        turn: Turn,
        scopes: Scopes,
        functions: Mapping[str, Callable[[Turn], Any]],
        is_peek: bool,
    ) -> Admitted | Decision:
        """Give the turn ready to be stepped, or the decision that stands already.

        On an exception nothing has changed.
        """
        turn = _checked(live, turn)
        key = (turn.tenant, turn.session_id)
        values, faults = (None, []) if not functions else gather(turn, live.program.scalars, functions)
        session = self._sessions.find(key)
        if session is not None:
            self.bring_up(live, session)
            if turn.turn_id is not None:
                stored = self._known(live, turn, session, values, functions, is_peek)
                if stored is not None:
                    return stored
                if turn.turn_id > session.last + 1:
                    faults.append(Fault("turn_gap", "", f"{turn.turn_id - session.last - 1} missing"))
        session = self._own(live, session, key, is_peek)
        replica, device, flags, more = scopes.place(live, turn, is_peek)
        faults += more
        self._model(session, turn, live)
        skip, more, rewritten = self._receipt(session, turn, live)
        return Admitted(
            turn, session, replica, device, flags | (c.F_REWRITTEN if rewritten else 0), skip, values, faults + more
        )

    def bring_up(self, live: Generation, session: Session) -> None:
        """Bring a session into this generation; the state that is kept longest may be another one."""
        if session.rows is not live.rows[0]:
            live.migrate(session, 0)
            state = session.rows.words(session.row)[live.program.rows[0].machine]
            self._sessions.keep(session, live.keeps(state))

    def _known(
        self,
        live: Generation,
        turn: Turn,
        session: Session,
        values: list[float] | None,
        functions: Mapping[str, Callable[[Turn], Any]],
        is_peek: bool,
    ) -> Decision | None:
        """Give the stored decision when this turn is not a new one."""
        assert turn.turn_id is not None
        if turn.turn_id > session.last or session.decision is None:
            return None
        if turn.turn_id < session.last:
            row = 1 + (session.stale[1] if session.stale[0] == session.last else 0)
            if not is_peek:
                session.stale = (session.last, row)
            note = "" if row < 3 else "several in a row: forget() a session whose numbering restarts"
            return _stale(session.decision, Fault("stale", "", note))
        if turn.revision > session.revision:
            return None
        stored: Decision = session.decision
        if turn.model == session.said_model and turn.revision == session.revision:
            # The pack that decided knows what it read: a reload in between makes no conflict.
            judge = cast(Generation, stored._view)
            if judge is not live and functions:
                values, _ = gather(turn, judge.program.scalars, functions)
            if judge.is_same(turn, session, values):
                return stored
        return _with_fault(stored, Fault("turn_conflict"))

    def _own(self, live: Generation, session: Session | None, key: tuple[Any, Any], is_peek: bool) -> Session:
        """Give the session to step: the one found, a new one, or for a peek a copy."""
        if session is None:
            session = Session(live.rows[0], live.rows[0].take(), key=key)
            if not is_peek:
                session.past = self.memory_of_past()
                self._sessions.add(session)
            return session
        if is_peek:
            return session.copy()
        self._sessions.touch(session)
        session.seen = self._sessions.clock()
        session.stale = (-1, 0)
        return session

    @staticmethod
    def _model(session: Session, turn: Turn, live: Generation) -> None:
        session.said_model = turn.model
        if turn.model is None:
            return
        if session.model is not None and turn.model != session.model:
            live.restart(session, live.program.rows[0].model_spans)
        session.model = turn.model

    @staticmethod
    def _receipt(session: Session, turn: Turn, live: Generation) -> tuple[int, list[Fault], bool]:
        receipt = turn.applied
        if receipt is None:
            return 0, [], False
        is_ours = (receipt.tenant, receipt.session_id) == (turn.tenant, turn.session_id)
        if not is_ours or not 0 <= receipt.turn_id <= session.last:
            return 0, [Fault("receipt_unknown", "", "of no decision of this session")], False
        skip = 0
        for name in receipt.done:
            live.restart(session, live.program.rows[0].rebase.get(name, ()))
            skip |= live.program.skip_on.get(name, 0)
        return skip, [], not _REWRITES.isdisjoint(receipt.done)

    # -- past states

    @staticmethod
    def remember(session: Session) -> None:
        """Keep the state after the turn just taken."""
        row = session.rows.view(session.row).copy()
        vec = None if session.vec is None else session.vec.copy()
        session.past.append(
            _Past(
                session.last, session.rows, row, vec, session.decision, session.model, session.said_model,
                session.revision,
            )
        )  # fmt: skip

    def branch(self, source: Session, key: tuple[Any, Any], at_turn: int | None) -> Session:
        """Copy a session, as it is or as it was after a turn; its decision speaks for the new one."""
        copy = source.copy()
        copy.key = key
        copy.past = self.memory_of_past()
        if at_turn is not None and at_turn != source.last:
            # Of several revisions of a turn the last; one from before a reload has another layout.
            kept = [p for p in source.past or () if p.last == at_turn and p.rows is source.rows]
            if not kept:
                copy.release()
                raise UsageError("that turn is not kept: Engine.load(snapshots=n) keeps the last n")
            kept[-1].revive(copy)
            copy.kept = copy.decision._view.keeps(copy.decision._code & 255)
        if copy.decision is not None:
            copy.decision = _changed(copy.decision, 1, key[1])
        return copy

    def memory_of_past(self) -> deque[_Past] | None:
        """Give a new session somewhere to keep its past, where that was asked for."""
        return deque(maxlen=self._snapshots) if self._snapshots else None


@attrs.frozen(eq=False)
class _Past:
    """A session as it was after a turn."""

    last: int
    rows: Rows
    row: NDArray[np.float64]
    vec: NDArray[np.float32] | None
    decision: Decision
    model: str | None
    said_model: str | None
    revision: int

    def revive(self, session: Session) -> None:
        """Make a session what it was then."""
        session.last, session.decision, session.revision = self.last, self.decision, self.revision
        session.model, session.said_model = self.model, self.said_model
        session.rows.view(session.row)[:] = self.row
        session.vec, session.vec_at = None, 0
        block = None if self.vec is None else session.need_vector()
        if block is not None and self.vec is not None:
            block[:] = self.vec


def _checked(live: Generation, turn: Turn) -> Turn:
    """Refuse what can never work; gives the turn with extras that nobody changes meanwhile."""
    check_id(turn.tenant, "tenant")
    check_id(turn.session_id, "session_id")
    if turn.turn_id is not None:
        check_number(turn.turn_id, "turn_id")
    check_number(turn.revision, "revision")
    if turn.replica is not None:
        check_id(turn.replica, "replica")
    if turn.device is not None:
        check_id(turn.device, "device")
    model: Any = turn.model
    if not isinstance(model, str | None):
        raise TurnError(f"model must be str, not {type(model).__name__}")
    if turn.applied is not None:
        _check_receipt(turn.applied)
    if turn.extra is None:
        return turn
    extra = _plain_extra(turn.extra)
    for name in tuple(extra):  # another thread may add to it meanwhile
        if name not in live.pack.signals:
            # A name that cannot be one is not shown: it may be somebody's text.
            shown = repr(name) if isinstance(name, str) and _NAME.fullmatch(name) else "of that name"
            is_ours = isinstance(name, str) and name in CATALOGUE
            near = f"Turn has a field `{name}`" if is_ours else did_you_mean(str(name), live.pack.signals)
            raise UnknownSignal(f"the pack declares no signal {shown}" + (f"; {near}" if near else ""))
    return turn if extra is turn.extra else attrs.evolve(turn, extra=extra)


def _check_receipt(receipt: Any) -> None:
    if receipt.__class__ is not Receipt:
        raise TurnError(f"applied must be a Receipt, not {type(receipt).__name__}")
    check_id(receipt.tenant, "tenant of a receipt")
    check_id(receipt.session_id, "session_id of a receipt")
    check_number(receipt.turn_id, "turn_id of a receipt")
    done: Any = receipt.done
    if not isinstance(done, tuple) or not all(isinstance(name, str) for name in done):
        raise TurnError("done of a receipt must be a tuple of names")


def _plain_extra(extra: Any) -> dict[Any, Any]:
    if type(extra) is dict:
        return extra
    if not isinstance(extra, Mapping):
        raise UsageError(f"extra must be a mapping, not {type(extra).__name__}")
    try:
        return dict(extra)
    except Exception as error:  # a host's own mapping may raise anything
        raise UsageError(f"extra cannot be read: {type(error).__name__}") from None


def _stale(decision: Decision, fault: Fault) -> Decision:
    """Give the state that stands, and nothing to do."""
    state = decision._code & 255
    return _changed(_changed(decision, 3, state | state << 8 | c.B_STALE), 5, (fault,))


def _with_fault(decision: Decision, fault: Fault) -> Decision:
    return _changed(decision, 5, (*decision.faults, fault))


def _changed(decision: Decision, place: int, value: Any) -> Decision:
    return tuple.__new__(Decision, (*decision[:place], value, *decision[place + 1 :]))
