"""One log event per change of state, and per session that was dropped while in trouble.

Logging is never configured here: where the host has configured structlog its loggers are used,
else the standard library's ``logging`` at level INFO under ``stabilitykit``.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from typing import Any

import structlog

from stabilitykit.decision import Decision
from stabilitykit.engine.identity import hashed
from stabilitykit.session import Session

__all__ = ["Journal"]

_standard = logging.getLogger("stabilitykit")


class Journal:
    """Writes events; identities are hashed under a key.

    Parameters
    ----------
    key
        Key of the hash; without it nobody can tell which conversation a line is about.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.waiting: deque[Decision | dict[str, Any]] = deque()
        """Events noted under the engine's lock; ``flush`` writes them without it."""

    def changed(self, decision: Decision) -> None:
        """Note that a session, replica or device entered another state."""
        if not self._is_off():
            self.waiting.append(decision)

    def dropped(self, session: Session, why: str) -> None:
        """Note a session that left for want of room or by age when it was in trouble."""
        if session.kept and not self._is_off():
            state = session.decision.state if session.decision is not None else ""
            self.waiting.append({"id": hashed(session.key[1], self._key, session.key[0]), "why": why, "state": state})

    def flush(self) -> None:
        """Write what was noted; a slow handler keeps nobody else waiting."""
        while self.waiting:
            try:
                event = self.waiting.popleft()
            except IndexError:  # another thread took it
                return
            if isinstance(event, dict):
                self._write("session_dropped", **event)
            else:
                self._write("state_changed", **self._fields(event))

    def _fields(self, decision: Decision) -> dict[str, Any]:
        return {
            "scope": decision.scope,
            "id": hashed(decision.session_id, self._key, decision.tenant),
            "turn_id": decision.turn_id,
            "previous": decision.previous,
            "state": decision.state,
            "rules": [m.rule for m in decision.matches],
            "pack": decision.fingerprint[:12],
            "generation": decision.generation,
        }

    @staticmethod
    def _is_off() -> bool:
        return not structlog.is_configured() and not _standard.isEnabledFor(logging.INFO)

    @staticmethod
    def _write(event: str, **fields: Any) -> None:
        # A broken log pipeline must not cost the host its reply.
        with contextlib.suppress(Exception):
            if structlog.is_configured():
                structlog.get_logger("stabilitykit").info(event, **fields)
            else:
                _standard.info("%s %s", event, " ".join(f"{k}={v}" for k, v in fields.items()))
