"""One turn stepped: every way to a Decision but the shortest, which is in ``Engine.evaluate``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stabilitykit.compiled import header as c
from stabilitykit.decision import Decision, Fault
from stabilitykit.engine.admission import Admission
from stabilitykit.engine.generation import Generation
from stabilitykit.engine.journal import Journal
from stabilitykit.engine.observing import Scopes
from stabilitykit.engine.staleness import stale_signals
from stabilitykit.session import Instance, Session, SessionStore
from stabilitykit.turn import Turn

__all__ = ["RARE", "Stepping"]

MOVED = 1 << 16 | c.B_REPLICA | c.B_DEVICE
"""Bits of a result that tell of an entered state or of a sample taken."""
RARE = MOVED | c.B_FAULT
"""Bits of a result after which there is more to do than to answer."""


class Stepping:
    """Steps turns under the lock of the engine that owns it.

    Parameters
    ----------
    sessions, admission, scopes, journal
        The engine's own.
    functions
        Functions of the Turn by signal, as the engine registers them.
    """

    def __init__(
        self,
        sessions: SessionStore,
        admission: Admission,
        scopes: Scopes,
        journal: Journal,
        functions: Mapping[str, Callable[[Turn], Any]],
    ) -> None:
        self._sessions = sessions
        self._admission = admission
        self._scopes = scopes
        self._journal = journal
        self._functions = functions

    def unusual(self, live: Generation, turn: Turn, is_peek: bool = False) -> Decision:
        """Evaluate a turn that the short way of ``evaluate`` does not cover."""
        admitted = self._admission.admit(live, turn, self._scopes, self._functions, is_peek)
        if isinstance(admitted, Decision):
            return admitted
        try:
            decision = self.step(
                live, admitted.turn, admitted.session, admitted.replica, admitted.device,
                admitted.flags, admitted.skip, admitted.values, admitted.faults,
            )  # fmt: skip
        finally:
            if is_peek:
                admitted.session.release()
                admitted.replica.release()
                admitted.device.release()
        return decision

    def step(
        self,
        live: Generation,
        turn: Turn,
        session: Session,
        replica: Instance,
        device: Instance,
        flags: int,
        skip: int = 0,
        values: list[float] | None = None,
        faults: Sequence[Fault] = (),
    ) -> Decision:
        """Bring a turn in, run the pass and decide."""
        found = live.bring(turn, session, replica, device, flags, skip, values, self._functions)
        code = live.call(live.address)
        return self.taken(live, turn, session, replica, device, code, [*faults, *found])

    def taken(
        self, live: Generation, turn: Turn, session: Session, replica: Instance, device: Instance, code: int,
        faults: Sequence[Fault],
    ) -> Decision:  # fmt: skip
        """Make the Decision of a pass just run, and do what follows from it."""
        found = [*live.spoken_faults(faults, code)] if faults else []
        snapshot = live.snapshot()
        if code & c.B_FAULT:
            found += [*live.pass_faults(), *stale_signals(live, session, replica, device)]
        turn_id = turn.turn_id
        if turn_id is None:
            turn_id = session.last + 1 if session.last >= 0 else 1
        memory = live.shown_memory() if code & c.B_MATCHED else b""
        fields = (live, turn.session_id, turn_id, code, snapshot, tuple(found), memory, "session", turn.tenant)
        decision = Decision(fields)
        session.last = turn_id
        session.revision = turn.revision
        session.said_model = turn.model
        session.decision = decision
        if code & MOVED:
            self._after(live, turn, session, replica, device, code)
        if session.past is not None:
            self._admission.remember(session)
        return decision

    def _after(
        self, live: Generation, turn: Turn, session: Session, replica: Instance, device: Instance, code: int
    ) -> None:
        """Do what follows from a change of state or a sample taken."""
        is_real = self._sessions.holds(session)  # a peek steps a copy
        if code & (c.B_REPLICA | c.B_DEVICE):
            self._scopes.moved(turn, code, replica, device)
            if is_real:
                self._scopes.tell(live, (turn.replica, turn.device), session.decision, self._journal)
        if code >> 16 & 1 and is_real:
            self._sessions.keep(session, live.keeps(code & 255))
            self._journal.changed(session.decision)
