"""What the oracle answers, and an event on its way through it."""

from __future__ import annotations

from typing import Any

import attrs

from tests.naive.scopes import Instance, Moved

__all__ = ["Event", "Outcome"]


@attrs.frozen
class Outcome:
    """What the engine must have decided.

    Parameters
    ----------
    state, previous
        Of the session (of the sampled scope after ``observe``), after and before.
    matches, fired
        Ids of the session's rules (of the sampled scopes' after ``observe``), in pack order.
    actions
        (name, params) in output order.
    suppressed
        (name, params, name of the winner).
    faults
        (kind, signal), sorted, each once.
    scopes
        Wider scope to state, only scopes that have rules.
    verdicts
        Rule id to "T", "U" or "F", of the rules that moved.
    wider_matches, wider_fired
        Wider scope to rule ids: matching as of its last sample, fired now.
    """

    state: str
    previous: str
    matches: tuple[str, ...] = ()
    fired: tuple[str, ...] = ()
    actions: list[tuple[str, dict[str, Any]]] = attrs.field(factory=list)
    suppressed: list[tuple[str, dict[str, Any], str]] = attrs.field(factory=list)
    faults: list[tuple[str, str]] = attrs.field(factory=list)
    scopes: dict[str, str] = attrs.field(factory=dict)
    verdicts: dict[str, str] = attrs.field(factory=dict)
    wider_matches: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    wider_fired: dict[str, tuple[str, ...]] = attrs.field(factory=dict)


@attrs.define
class Event:
    """One accepted turn or one observation on its way through the engine."""

    instances: dict[str, Instance]  # by scope: those in play
    view: dict[str, Any] = attrs.field(factory=dict)  # signal -> value as a session sees it
    now_s: float | None = None
    sampled: list[str] = attrs.field(factory=list)  # wider scopes
    moved: dict[str, Moved] = attrs.field(factory=dict)
    before: dict[str, str] = attrs.field(factory=dict)  # scope -> state
    faults: set[tuple[str, str]] = attrs.field(factory=set)
