"""Which turns to look at closely: a share of all, and more of a conversation whose decision asks for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from hashlib import blake2b
from operator import index
from typing import Any

from stabilitykit.decision import Decision
from stabilitykit.engine.identity import check_key, check_number, plain_bytes, salt_of
from stabilitykit.errors import UsageError
from stabilitykit.integrations.forked import begins_anew
from stabilitykit.integrations.telling import tell
from stabilitykit.mitigations.directives import SampleDiagnostics, directive

__all__ = ["DiagnosticSampler"]


class DiagnosticSampler:
    """Picks turns by a keyed hash of conversation and turn: every process picks the same ones.

    A greater rate picks the same turns and more. ``sample_diagnostics`` raises the rate of one conversation for
    ``hold_turns`` turns; of several wishes the greatest counts.

    Parameters
    ----------
    key
        Secret of the hash, up to 64 bytes.
    rate
        Share of turns picked in quiet times.
    hold_turns
        Turns for which a raised rate holds.
    capacity
        Conversations with a raised rate; of more the oldest is forgotten.

    Examples
    --------
    >>> sampler = DiagnosticSampler(key=b"secret", rate=0.1)
    >>> sum(sampler.is_picked("c-1", turn) for turn in range(1_000))
    104
    """

    def __init__(self, *, key: bytes, rate: float = 0.01, hold_turns: int = 20, capacity: int = 10_000) -> None:
        if not 0.0 <= rate <= 1.0:
            raise UsageError(f"a rate is in [0, 1], not {rate!r}")
        check_key(key)
        if index(hold_turns) < 0 or index(capacity) < 1:
            raise UsageError("a rate holds for some turns, of at least one conversation")
        self._key, self._rate = key, rate
        self._hold_turns, self._capacity = hold_turns, capacity
        self._lock = threading.Lock()
        self._raised: OrderedDict[tuple[Any, Any], tuple[float, int]] = OrderedDict()
        begins_anew(self)

    def begin_anew(self) -> None:
        """Serve in a forked child: raised rates stay."""
        self._lock = threading.Lock()

    def note(self, decision: Decision) -> bool:
        """Raise the rate where a decision asks for it; False when it does not. Never raises."""
        try:
            return self._note(decision)
        except Exception as error:
            tell("telemetry_failed", where="sampling", error=type(error).__name__)
            return False

    def _note(self, decision: Decision) -> bool:
        asked = [directive(action) for action in decision.actions if action.name == SampleDiagnostics.action]
        rates = [float(d.rate) for d in asked if isinstance(d, SampleDiagnostics)]
        if not rates or decision.scope != "session":
            return False
        with self._lock:
            key = (decision.tenant, decision.session_id)
            self._raised[key] = max(rates), decision.turn_id + self._hold_turns
            self._raised.move_to_end(key)
            if len(self._raised) > self._capacity:
                self._raised.popitem(last=False)
        return True

    def rate(self, session_id: Any, turn_id: int, *, tenant: Any = "") -> float:
        """Give the rate that holds for a turn."""
        with self._lock:
            raised, until = self._raised.get((tenant, session_id), (0.0, -1))
        return max(self._rate, raised) if turn_id <= until else self._rate

    def is_picked(self, session_id: Any, turn_id: int, *, tenant: Any = "") -> bool:
        """Tell whether to look closely at a turn.

        Raises
        ------
        TurnError
            No turn has such an id.
        """
        check_number(turn_id, "turn_id")
        data, salt = turn_id.to_bytes(8, "little") + plain_bytes(session_id), salt_of(tenant, self._key)
        digest = blake2b(data, key=self._key, salt=salt, digest_size=8).digest()
        return int.from_bytes(digest, "little") < self.rate(session_id, turn_id, tenant=tenant) * 2.0**64
