"""Decisions as Prometheus counters (extra ``prometheus``): what ``emit_metric`` asks for, states, rules that fired."""

from __future__ import annotations

import importlib
from typing import Any

from stabilitykit.decision import Decision
from stabilitykit.errors import MissingExtra
from stabilitykit.integrations.telling import tell
from stabilitykit.mitigations.directives import EmitMetric

__all__ = ["DecisionCounters"]


class DecisionCounters:
    """Counts decisions; labels are names of the pack and never of a conversation, so their number is the pack's.

    ``stabilitykit_events_total{name}`` counts each ``emit_metric``, ``stabilitykit_decisions_total{scope, state}`` each
    decision, ``stabilitykit_rules_fired_total{rule}`` each firing.

    Parameters
    ----------
    registry
        A ``CollectorRegistry``; None: the package's own.

    Raises
    ------
    MissingExtra
        ``prometheus_client`` is not installed.

    Examples
    --------
    >>> from prometheus_client import CollectorRegistry
    >>> from stabilitykit import Engine, Turn
    >>> registry = CollectorRegistry()
    >>> counters = DecisionCounters(registry)
    >>> counters.note(Engine.load("chat").evaluate(Turn(session_id="c-1", itl_ms=40.0)))
    >>> registry.get_sample_value("stabilitykit_decisions_total", {"scope": "session", "state": "healthy"})
    1.0
    """

    def __init__(self, registry: Any = None) -> None:
        try:
            client: Any = importlib.import_module("prometheus_client")
        except ImportError:
            raise MissingExtra("prometheus_client", "prometheus") from None
        own = {"namespace": "stabilitykit", "registry": registry or client.REGISTRY}
        self._events = client.Counter("events", "Events that a pack counts (emit_metric).", ["name"], **own)
        self._decisions = client.Counter("decisions", "Decisions by scope and state.", ["scope", "state"], **own)
        self._fired = client.Counter("rules_fired", "Rules that fired.", ["rule"], **own)

    def note(self, decision: Decision) -> None:
        """Count a decision of ``evaluate`` or ``observe``. Never raises."""
        try:
            self._decisions.labels(decision.scope, decision.state).inc()
            for rule in decision.fired:
                self._fired.labels(rule).inc()
            for action in decision.actions:
                if action.name == EmitMetric.action:
                    self._events.labels(EmitMetric.from_action(action).name).inc()
        except Exception as error:
            tell("telemetry_failed", where="prometheus", error=type(error).__name__)
