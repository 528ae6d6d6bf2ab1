"""What the engine answers: Decision, Match, Reason, Fault, Receipt; its actions are those of the action table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Literal, Protocol

import attrs

from stabilitykit.actions import ACTIONS, Action, ActionSpec, ParamSpec
from stabilitykit.errors import UsageError

__all__ = [
    "ACTIONS",
    "Action",
    "ActionSpec",
    "Decision",
    "Fault",
    "Match",
    "ParamSpec",
    "Reason",
    "Receipt",
    "Suppressed",
]

FaultKind = Literal[
    "invalid",
    "type_mismatch",
    "dimension",
    "stale",
    "turn_conflict",
    "turn_gap",
    "signal_stale",
    "unit_suspect",
    "signal_function",
    "receipt_unknown",
]
FAULT_KINDS: tuple[str, ...] = FaultKind.__args__  # type: ignore[attr-defined]


@attrs.frozen
class Fault:
    """Bad telemetry that the engine noticed and survived.

    Parameters
    ----------
    kind
        One of the closed list of section 12 of the rule language.
    signal
        The signal it is about ("" for a fault of the turn itself).
    detail
        One phrase of numbers and names, never text of a message.
    """

    kind: FaultKind
    signal: str = ""
    detail: str = ""


@attrs.frozen
class Suppressed:
    """An action that lost a conflict, and the action that won."""

    action: Action
    winner: str


@attrs.frozen
class Receipt:
    """What the host reports back: the actions of a decision that were carried out.

    Parameters
    ----------
    session_id, turn_id
        The decision it belongs to.
    done
        Names of the actions carried out.
    details
        What each did, for the host.
    tenant
        The decision's tenant: a receipt of another one is a fault without effect.
    """

    session_id: str
    turn_id: int
    done: tuple[str, ...]
    details: Mapping[str, Any] = attrs.field(factory=dict)
    tenant: str = ""


@attrs.frozen
class Match:
    """A rule that matches on this turn.

    Parameters
    ----------
    rule
        Its id.
    severity
        ``info``, ``warning`` or ``critical``.
    scope
        Where the rule lives.
    fired
        True when it also fired (its ``do`` went out) on this turn.
    """

    rule: str
    severity: str
    scope: str
    fired: bool


@attrs.frozen
class Reason:
    """Why one rule matches: one comparison of its condition, with the numbers of this turn.

    Parameters
    ----------
    rule, severity, scope
        The rule.
    signal
        What was compared, as it stands in the rule.
    value, threshold
        The two sides, in ``unit``; NaN when unknown.
    op
        The comparison.
    margin
        Signed distance past the threshold: positive when the comparison holds.
    streak, need
        Consecutive turns so far and the turns wanted (for `count`: hits and hits wanted).
    counterfactual
        The nearest change of one signal that would have avoided the match ("" when none would).
    text
        The pack's own reason, rendered ("" when it has none).
    """

    rule: str
    severity: str
    scope: str
    signal: str
    op: str
    value: float
    threshold: float
    unit: str
    margin: float
    streak: int
    need: int
    counterfactual: str = ""
    text: str = ""


class Explainer(Protocol):
    """What the engine gives a Decision so that it can show itself; no room below imports it."""

    def state(self, decision: Decision) -> str:
        """Name the state the turn ended in."""

    def previous(self, decision: Decision) -> str:
        """Name the state before the turn."""

    def scopes(self, decision: Decision) -> Mapping[str, str]:
        """Name the states of the wider scopes."""

    def matches(self, decision: Decision) -> tuple[Match, ...]:
        """List the rules that match."""

    def plan(self, decision: Decision) -> tuple[tuple[Action, ...], tuple[Suppressed, ...]]:
        """Give the actions and those that lost a conflict."""

    def reasons(self, decision: Decision) -> tuple[Reason, ...]:
        """Say why each rule matches."""

    def explain(self, decision: Decision) -> str:
        """Render the whole decision as text."""

    def to_dict(self, decision: Decision) -> dict[str, Any]:
        """Render the whole decision as JSON values."""

    def apply(
        self, decision: Decision, messages: Sequence[Mapping[str, Any]], lent: Mapping[str, Any]
    ) -> tuple[list[Any], Receipt]:
        """Carry out the text-level actions."""

    @property
    def pack(self) -> Any:
        """Give the pack."""

    @property
    def fingerprint(self) -> str:
        """Give the digest of the pack."""

    @property
    def number(self) -> int:
        """Give the generation."""


class Decision(tuple[Any, ...]):
    """The answer to one turn or one sample: immutable, built in a fraction of a microsecond.

    Everything beyond the raw words is decoded when it is asked for.

    Attributes
    ----------
    session_id
        The conversation (the replica or device of an ``observe``).
    turn_id
        The turn (0 for an ``observe``).
    scope
        ``session``, or the scope of an ``observe``.
    faults
        Bad telemetry that was noticed.
    tenant
        Whose conversation (replica, device) it is: two tenants may use one id.
    """

    __slots__ = ()

    _view: Explainer = property(itemgetter(0))  # type: ignore[assignment]
    session_id: str = property(itemgetter(1))  # type: ignore[assignment]
    turn_id: int = property(itemgetter(2))  # type: ignore[assignment]
    _code: int = property(itemgetter(3))  # type: ignore[assignment]
    _snapshot: bytes = property(itemgetter(4))  # type: ignore[assignment]
    faults: tuple[Fault, ...] = property(itemgetter(5))  # type: ignore[assignment]
    _memory: bytes = property(itemgetter(6))  # type: ignore[assignment]
    scope: str = property(itemgetter(7))  # type: ignore[assignment]
    tenant: str = property(itemgetter(8))  # type: ignore[assignment]

    @property
    def state(self) -> str:
        """Name of the state the conversation is in after this turn."""
        return self._view.state(self)

    @property
    def previous(self) -> str:
        """Name of the state before this turn."""
        return self._view.previous(self)

    @property
    def scopes(self) -> Mapping[str, str]:
        """States of the replica and the device, where the pack has rules for them."""
        return self._view.scopes(self)

    @property
    def matches(self) -> tuple[Match, ...]:
        """Rules that match on this turn, in every scope, in pack order."""
        return self._view.matches(self)

    @property
    def fired(self) -> tuple[str, ...]:
        """Ids of the rules that fired: whose ``do`` went out with this decision."""
        return tuple(m.rule for m in self._view.matches(self) if m.fired)

    @property
    def actions(self) -> tuple[Action, ...]:
        """What the host should do, conflicts resolved, in the order to carry it out."""
        return self._view.plan(self)[0]

    @property
    def suppressed(self) -> tuple[Suppressed, ...]:
        """Actions that lost a conflict, each with the winner."""
        return self._view.plan(self)[1]

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why each rule matches: rule, signal, value, threshold, margin, streak."""
        return self._view.reasons(self)

    @property
    def fingerprint(self) -> str:
        """Digest of the pack that decided."""
        return self._view.fingerprint

    @property
    def generation(self) -> int:
        """Number of the pack's generation: 1 at load, one more at each reload."""
        return self._view.number

    def explain(self) -> str:
        """Say in text what was decided and why."""
        return self._view.explain(self)

    def to_dict(self) -> dict[str, Any]:
        """Give the decision as JSON values."""
        return self._view.to_dict(self)

    def apply(self, messages: Sequence[Mapping[str, Any]], **lent: Any) -> tuple[list[Any], Receipt]:
        """Carry out the text-level actions on OpenAI-style messages; the given list is not changed.

        Parameters
        ----------
        messages
            The conversation as it would be sent.
        **lent
            What the host lends: ``context_window_tokens``, ``count_tokens``, ``summarise``, ``embed``, ``snapshots``,
            ``values``, ``nonce``; see ``stabilitykit.mitigations.outcome.Lent``. Another name is a UsageError.

        Returns
        -------
        tuple
            The messages to send, and the receipt for ``Turn(applied=...)``: only what really acted is in it.
        """
        return self._view.apply(self, messages, lent)

    def receipt(self, done: tuple[str, ...] | list[str]) -> Receipt:
        """Report what the host carried out, for ``Turn(applied=...)``; a name the pack lacks is a UsageError."""
        unknown = [name for name in done if name not in self._view.pack.actions]
        if unknown:
            raise UsageError(f"no such action: {', '.join(map(repr, unknown))}")
        return Receipt(self.session_id, self.turn_id, tuple(done), tenant=self.tenant)

    def __copy__(self) -> Decision:
        return self

    def __deepcopy__(self, _: Any) -> Decision:
        return self

    def __reduce_ex__(self, _: Any) -> Any:
        raise TypeError("a Decision reads itself through its engine and cannot be pickled; send decision.to_dict()")

    def __repr__(self) -> str:
        return f"Decision({self.scope}={self.session_id!r}, turn_id={self.turn_id}, state={self.state!r})"
