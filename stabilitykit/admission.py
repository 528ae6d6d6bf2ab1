"""Is this a turn to take in? Identity, duplicates, gaps, change of model, receipts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs
import numpy as np

from stabilitykit import compiled as c
from stabilitykit.decision import Decision, Fault
from stabilitykit.errors import UnknownSignal, UsageError
from stabilitykit.generation import Generation
from stabilitykit.identity import check_id, check_turn_id
from stabilitykit.observing import Scopes
from stabilitykit.packing import gather
from stabilitykit.session import Instance, Memory, Session, SessionStore
from stabilitykit.turn import Turn

__all__ = ["Admission", "Admitted"]

Held = TypeVar("Held", bound=Memory)
_REWRITES = frozenset({"reset_context", "rollback_snapshot", "trim_context"})


@attrs.frozen(eq=False)
class Admitted:
    """A turn ready to be stepped, or the decision that stands already."""

    session: Session
    replica: Instance
    device: Instance
    flags: int
    skip: int
    values: list[float] | None
    faults: list[Fault]
    stored: Decision | None = None


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
    ) -> Admitted:
        """Say what to do with a turn; on an exception nothing has changed."""
        check_id(turn.tenant, "tenant")
        check_id(turn.session_id, "session_id")
        if turn.turn_id is not None:
            check_turn_id(turn.turn_id)
        if turn.extra is not None:
            _check_extra(live, turn.extra)
        check_turn_id(turn.revision)
        for scope, name in ((1, turn.replica), (2, turn.device)):
            if name is not None:
                check_id(name, ("", "replica", "device")[scope])
        key = (turn.tenant, turn.session_id)
        session = self._sessions.find(key)
        if session is not None:
            live.migrate(session, 0)
        values, faults = (None, []) if not functions else gather(turn, live.program.scalars, functions)
        if session is not None and turn.turn_id is not None:
            stored = self._known(live, turn, session, values, faults)
            if stored is not None:
                place = scopes.idle(live)
                return Admitted(session, place, place, 0, 0, None, [], stored)
            if turn.turn_id > session.last + 1:
                faults.append(Fault("turn_gap", "", f"{turn.turn_id - session.last - 1} missing"))
        session = self._own(live, session, key, is_peek)
        replica, device, flags, more = scopes.place(live, turn)
        faults += more
        if is_peek:
            replica, device = _ghost(replica), _ghost(device)
        self._model(session, turn, live)
        skip, more, rewritten = self._receipt(session, turn, live)
        return Admitted(
            session, replica, device, flags | (c.F_REWRITTEN if rewritten else 0), skip, values, faults + more
        )

    def _known(
        self, live: Generation, turn: Turn, session: Session, values: list[float] | None, faults: list[Fault]
    ) -> Decision | None:
        """Give the stored decision when this turn is not a new one."""
        assert turn.turn_id is not None
        if turn.turn_id > session.last or session.decision is None:
            return None
        if turn.turn_id < session.last:
            session.stale += 1
            note = "" if session.stale < 3 else "several in a row: forget() a session whose numbering restarts"
            return _stale(session.decision, Fault("stale", "", note))
        if turn.revision > session.revision:
            return None
        if turn.model == session.said_model and turn.revision == session.revision and live.is_same(turn, session, values):
            stored: Decision = session.decision
            return stored
        return _with_fault(session.decision, Fault("turn_conflict"))

    def _own(self, live: Generation, session: Session | None, key: tuple[Any, Any], is_peek: bool) -> Session:
        """Give the session to step: the one found, a new one, or for a peek a copy."""
        if session is None:
            session = Session(live.rows[0], live.rows[0].take(), key=key)
            if not is_peek:
                if self._snapshots:
                    session.past = deque(maxlen=self._snapshots)
                self._sessions.add(session)
            return session
        if is_peek:
            return _ghost(session)
        self._sessions.touch(session)
        session.seen = self._sessions.clock()
        session.stale = 0
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
        done = getattr(receipt, "done", None)
        number = getattr(receipt, "turn_id", None)
        mine = getattr(receipt, "session_id", None) == turn.session_id
        if not mine or not isinstance(done, tuple) or not isinstance(number, int) or not 0 <= number <= session.last:
            return 0, [Fault("receipt_unknown", "", "of no decision of this session")], False
        skip = 0
        for name in done:
            live.restart(session, live.program.rows[0].rebase.get(name, ()))
            skip |= live.program.skip_on.get(name, 0)
        return skip, [], not _REWRITES.isdisjoint(done)

    # -- past states

    @staticmethod
    def remember(session: Session) -> None:
        """Keep the state after the turn just taken."""
        row = session.rows.view(session.row).copy()
        vec = None if session.vec is None else session.vec.copy()
        session.past.append((session.last, row, vec, session.decision, session.model, session.revision, session.rows))

    def branch(self, source: Session, key: tuple[Any, Any], at_turn: int | None) -> Session:
        """Copy a session, as it is or as it was after a turn."""
        copy = _ghost(source)
        copy.key = key
        copy.past = deque(maxlen=self._snapshots) if self._snapshots else None
        copy.kept = source.kept
        if at_turn is None or at_turn == source.last:
            return copy
        found = next((p for p in source.past or () if p[0] == at_turn and p[6] is source.rows), None)
        if found is None:
            copy.release()
            raise UsageError(f"turn {at_turn} is not kept: Engine.load(snapshots=n) keeps the last n")
        copy.last, row, vec, copy.decision, copy.model, copy.revision, _ = found
        copy.rows.view(copy.row)[:] = row
        copy.vec, copy.vec_at = None, 0
        if vec is not None:
            copy.need_vector()
            assert copy.vec is not None
            copy.vec[:] = vec
        copy.kept = copy.decision._code & 255 == copy.decision._view.worst
        return copy


def _check_extra(live: Generation, extra: Any) -> None:
    if not isinstance(extra, Mapping):
        raise UsageError(f"extra must be a mapping, not {type(extra).__name__}")
    for name in extra:
        if name not in live.pack.signals:
            raise UnknownSignal(f"the pack declares no signal {name!r:.60}")


def _stale(decision: Decision, fault: Fault) -> Decision:
    """Give the state that stands, and nothing to do."""
    fields = list(decision)
    state = decision._code & 255
    fields[3] = state | state << 8 | c.B_STALE
    fields[5] = (fault,)
    return tuple.__new__(Decision, fields)


def _with_fault(decision: Decision, fault: Fault) -> Decision:
    fields = list(decision)
    fields[5] = (*decision.faults, fault)
    return tuple.__new__(Decision, fields)


def _ghost(memory: Held) -> Held:
    """Copy a session or an instance into memory of its own."""
    copy = attrs.evolve(memory, row=memory.rows.take(), vec=None, vec_at=0)
    memory.rows.copy(memory.row, copy.row)
    if memory.vec is not None:
        copy.vec = np.array(memory.vec)
        copy.vec_at = copy.vec.ctypes.data
    return copy
