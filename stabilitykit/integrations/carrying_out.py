"""Hand each action of a decision to the host's adapter for it, and report which of them really acted."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from stabilitykit.actions import Action
from stabilitykit.decision import Decision, Receipt
from stabilitykit.errors import UsageError
from stabilitykit.integrations.telling import tell
from stabilitykit.mitigations.directives import MITIGATIONS, directive

__all__ = ["Host"]


class Host:
    """The adapters of a host, by action.

    Parameters
    ----------
    adapters
        For each action a function of its directive (``RefuseNew(retry_after_s=30.0)`` and so on), or of the ``Action``
        for one that a pack declares. It gives False, or what has a false ``is_done``, when it did not act; what it
        raises is logged and counts as that, and so does a coroutine: nobody waits for it. One that gives None acted.
    declared
        Names of actions that the pack declares.

    Raises
    ------
    UsageError
        A name that is neither an action of the language nor declared.

    Examples
    --------
    >>> from stabilitykit import Engine, Turn
    >>> host = Host({"trim_context": lambda trim: print(trim.budget)})
    >>> decision = Engine.load("chat").evaluate(Turn(session_id="c-1", error="context_overflow"))
    >>> host.carry_out(decision).done
    0.5
    ('trim_context',)
    """

    def __init__(self, adapters: Mapping[str, Callable[[Any], Any]], *, declared: tuple[str, ...] = ()) -> None:
        unknown = sorted(set(adapters) - set(MITIGATIONS) - set(declared))
        if unknown:
            raise UsageError(f"no such action: {', '.join(map(repr, unknown))}")
        self._adapters = dict(adapters)

    def carry_out(self, decision: Decision) -> Receipt:
        """Carry out what there is an adapter for, in the decision's order. Never raises.

        Returns
        -------
        Receipt
            Names what acted, for ``Turn(applied=...)``.
        """
        done = dict.fromkeys(action.name for action in decision.actions if self._acts(action))
        return Receipt(decision.session_id, decision.turn_id, tuple(done), tenant=decision.tenant)

    def _acts(self, action: Action) -> bool:
        adapter = self._adapters.get(action.name)
        if adapter is None:
            return False
        try:
            given = adapter(directive(action) or action)
            if inspect.iscoroutine(given):
                given.close()
                raise TypeError("an adapter is a plain function: nobody waits for its coroutine")
            said = getattr(given, "is_done", given)
            return said is None or bool(said)
        except Exception as error:
            tell("action_failed", action=action.name, error=type(error).__name__)
            return False
