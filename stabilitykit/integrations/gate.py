"""What the latest decisions ask of the requests that come next: refuse, throttle, answer from the shelf, switch.

The gate knows no web framework; ``integrations.asgi`` and ``integrations.litellm`` stand on it.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable

import attrs

from stabilitykit.actions import ACTIONS
from stabilitykit.decision import Decision
from stabilitykit.errors import UsageError
from stabilitykit.integrations.forked import begins_anew
from stabilitykit.integrations.telling import tell
from stabilitykit.mitigations.directives import CannedReply, RefuseNew, SwitchModel, Throttle, directive

__all__ = ["Admission", "Gate"]

DEGRADING = frozenset(name for name, spec in ACTIONS.items() if spec.group) | {"throttle"}
"""Actions after which the user gets less than usual: another answer, less history, later or none."""
_SILENCE_S = 300.0
"""A replica of which nothing was heard for so long limits nobody: it may be gone. As far Prometheus looks back."""


@attrs.frozen
class Admission:
    """What becomes of one request.

    Parameters
    ----------
    state
        The conversation's state where its reply is degraded, else "".
    retry_after_s
        Seconds until a retry makes sense; None: it is not refused.
    canned
        Name of the prepared text that answers it; None: the model answers.
    model
        Name of the model to use; None: the usual one.
    """

    state: str = ""
    retry_after_s: float | None = None
    canned: str | None = None
    model: str | None = None


@attrs.frozen
class _Limit:
    """So many requests at once, which rule or state asked for it, and when a decision last did not lift it."""

    requests: int
    source: str
    heard_s: float = math.nan

    def is_wanted(self, decision: Decision) -> bool:
        """Tell whether it still holds: a rule asks once, and then cools down while it matches."""
        kind, _, name = self.source.partition(":")
        return decision.state == name if kind == "state" else any(m.rule == name for m in decision.matches)


@attrs.frozen
class _Held:
    state: str = ""
    is_degraded: bool = False
    throttle: _Limit | None = None
    canned: str | None = None
    model: str | None = None


class Gate:
    """Remembers, of each conversation, what its latest decision asks of the next request.

    Parameters
    ----------
    capacity
        Conversations remembered; of more the one unused for longest is forgotten, and counts as new again.
    busy_retry_s
        Seconds that a request over the limit of ``throttle`` is told to wait.
    clock
        Seconds of a steady clock. Where it goes back, fails or tells none, a refusal lasts no longer than was asked.

    Raises
    ------
    UsageError
        A capacity below 1, or a wait that is no finite number from 0 on.

    Examples
    --------
    >>> from stabilitykit import Engine, Turn
    >>> gate, engine = Gate(), Engine.load("chat")
    >>> for error in ("server", "server", "none"):
    ...     gate.note(engine.evaluate(Turn(session_id="c-1", error=error)))
    >>> gate.enter("c-1").model, gate.enter("c-2").model
    ('light', None)
    """

    def __init__(
        self, *, capacity: int = 100_000, busy_retry_s: float = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not 1 <= capacity < math.inf or not 0 <= busy_retry_s < math.inf:
            raise UsageError("a gate remembers at least one conversation, and its wait is a finite number from 0 on")
        self._capacity, self._busy_retry_s, self._clock = capacity, busy_retry_s, clock
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[str, str], _Held] = OrderedDict()
        self._active: Counter[tuple[str, str]] = Counter()
        self._replicas: OrderedDict[tuple[str, str], _Limit] = OrderedDict()
        self._closed_s, self._told_s, self._closed_by = 0.0, 0.0, ""
        begins_anew(self)

    def begin_anew(self) -> None:
        """Serve in a forked child: what is asked of conversations stays, the parent's requests are not the child's."""
        self._lock = threading.Lock()
        self._active.clear()

    def note(self, decision: Decision) -> None:
        """Take a decision of ``evaluate`` or ``observe``: the ``on_decision`` of other integrations. Never raises."""
        try:
            self._note(decision)
        except Exception as error:
            tell("telemetry_failed", where="gate", error=type(error).__name__)

    def _note(self, decision: Decision) -> None:
        asked = [(found, action.source) for action in decision.actions if (found := directive(action)) is not None]
        state = decision.state
        held = _Held(state, any(d.action in DEGRADING for d, _ in asked))
        for d, source in asked:
            if isinstance(d, RefuseNew):
                self._close(d.retry_after_s, state)
            elif isinstance(d, Throttle):
                held = attrs.evolve(held, throttle=_Limit(int(d.max_concurrency), source))
            elif isinstance(d, CannedReply):
                held = attrs.evolve(held, canned=d.name)
            elif isinstance(d, SwitchModel):
                held = attrs.evolve(held, model=d.to)
        key = (decision.tenant, decision.session_id)
        with self._lock:
            if decision.scope == "session":
                before = self._held.get(key, _Held()).throttle
                if held.throttle is None and before is not None and before.is_wanted(decision):
                    held = attrs.evolve(held, throttle=before, is_degraded=True)
                self._keep(key, held)
            elif decision.scope == "replica":
                self._limit_replica(key, held.throttle, decision)

    def _limit_replica(self, replica: tuple[str, str], limit: _Limit | None, decision: Decision) -> None:
        before = self._replicas.pop(replica, None)
        if limit is None and before is not None and before.is_wanted(decision):
            limit = before
        if limit is not None:
            self._replicas[replica] = attrs.evolve(limit, heard_s=self._now())
            if len(self._replicas) > self._capacity:
                self._replicas.popitem(last=False)

    def enter(self, session_id: str, *, tenant: str = "") -> Admission:
        """Judge a request that has come; one that is neither refused nor canned must ``leave`` at its end.

        A canned reply answers once: the next request is tried again, otherwise no turn could ever show that the
        conversation has recovered. ``switch_model`` holds until the next decision; ``throttle`` as long as the rule
        that asked for it matches, or the state that did lasts. That of a replica holds for each conversation, and ends
        five minutes after the last decision on the replica.
        """
        key = (tenant, session_id)
        with self._lock:
            held = self._held.get(key)
            left = self._closed_left()
            if held is None and left > 0.0:
                return Admission(self._closed_by, retry_after_s=left)
            held = held or _Held()
            limits = [one.requests for one in self._replicas.values() if not self._told_s - one.heard_s > _SILENCE_S]
            if held.throttle is not None:
                limits.append(held.throttle.requests)
            if limits and self._active[key] >= min(limits):
                return Admission(held.state, retry_after_s=self._busy_retry_s)
            state = held.state if held.is_degraded else ""
            self._keep(key, attrs.evolve(held, canned=None))
            if held.canned is not None:
                return Admission(state, canned=held.canned)
            self._active[key] += 1
            return Admission(state, model=held.model)

    def leave(self, session_id: str, *, tenant: str = "") -> None:
        """Note that an admitted request has ended."""
        key = (tenant, session_id)
        with self._lock:
            self._active[key] -= 1
            if self._active[key] <= 0:
                del self._active[key]

    def take_canned(self, session_id: str, *, tenant: str = "") -> str | None:
        """Give the prepared text that a decision asked for while its request was served, once."""
        key = (tenant, session_id)
        with self._lock:
            held = self._held.get(key)
            if held is None or held.canned is None:
                return None
            self._keep(key, attrs.evolve(held, canned=None))
            return held.canned

    def state(self, session_id: str, *, tenant: str = "") -> str:
        """Give the conversation's state where its replies are degraded, else ""."""
        with self._lock:
            held = self._held.get((tenant, session_id))
        return held.state if held is not None and held.is_degraded else ""

    def model(self, session_id: str, usual: str, *, tenant: str = "") -> str:
        """Give the model that answers the conversation's next request."""
        with self._lock:
            held = self._held.get((tenant, session_id))
        return usual if held is None or held.model is None else held.model

    def _close(self, seconds: float, state: str) -> None:
        with self._lock:
            self._closed_s = max(self._closed_left(), seconds)
            self._closed_by = state

    def _closed_left(self) -> float:
        """Count the seconds down by what the clock went on; one that fails opens, for a reply is better than none."""
        now = self._now()
        gone = now - self._told_s
        self._closed_s = max(0.0, self._closed_s - max(0.0, gone)) if math.isfinite(now) else 0.0
        self._told_s = now if math.isfinite(now) else self._told_s
        return self._closed_s

    def _now(self) -> float:
        try:
            return float(self._clock())
        except Exception as error:
            tell("telemetry_failed", where="gate", error=type(error).__name__)
            return math.nan

    def _keep(self, key: tuple[str, str], held: _Held) -> None:
        self._held[key] = held
        self._held.move_to_end(key)
        while len(self._held) > self._capacity:
            self._held.popitem(last=False)
