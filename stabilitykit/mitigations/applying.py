"""Carry out the text-level actions of a decision on a list of messages: what stands behind ``decision.apply``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from stabilitykit.decision import Decision, Receipt
from stabilitykit.errors import UsageError
from stabilitykit.mitigations.context.appliers import insert_summary, reset_context, trim_context
from stabilitykit.mitigations.directives import directive
from stabilitykit.mitigations.outcome import Lent, Message, Outcome
from stabilitykit.mitigations.snapshots import rollback_snapshot
from stabilitykit.mitigations.state_tokens.inject import inject_state_tokens

__all__ = ["APPLIERS", "apply_decision"]

APPLIERS: dict[str, Callable[[Sequence[Message], Any, Lent], Outcome]] = {
    "inject_state_tokens": inject_state_tokens,
    "insert_summary": insert_summary,
    "reset_context": reset_context,
    "rollback_snapshot": rollback_snapshot,
    "trim_context": trim_context,
}
"""What carries out each text-level action, given its directive; the others are the host's. A new one adds its line."""


def apply_decision(
    decision: Decision, messages: Sequence[Message], lent: Mapping[str, Any]
) -> tuple[list[Message], Receipt]:
    """Apply a decision's text-level actions in their order; the receipt names those that acted.

    Raises
    ------
    UsageError
        Something lent by a name that no action asks for.
    """
    known = [field.name for field in attrs.fields(Lent)]
    unknown = sorted(set(lent) - set(known))
    if unknown:
        raise UsageError(f"no action asks for {', '.join(unknown)}; what a host may lend: {', '.join(known)}")
    host = Lent(**lent)
    now: Sequence[Message] = list(messages)
    done: list[str] = []
    details: dict[str, Any] = {}
    for action in decision.actions:
        applier = APPLIERS.get(action.name)
        if applier is None:
            continue
        try:
            outcome = applier(now, directive(action), host)
        except UsageError as problem:  # ours: it holds no text of anybody
            details[action.name] = {"why": str(problem)}
            continue
        except Exception as problem:  # odd messages, or a helper of the host: the reply goes on as it was
            details[action.name] = {"why": f"{type(problem).__name__} on the way"}
            continue
        details[action.name] = dict(outcome.details)
        if outcome.is_done:
            now = outcome.messages
            done.append(action.name)
    return list(now), Receipt(decision.session_id, decision.turn_id, tuple(done), details, decision.tenant)
