"""Decisions in OpenTelemetry (extra ``otel``): counters, and an event on the span that is open."""

from __future__ import annotations

import importlib
from typing import Any

from stabilitykit.decision import Decision
from stabilitykit.errors import MissingExtra
from stabilitykit.integrations.telling import tell
from stabilitykit.mitigations.directives import EmitMetric

__all__ = ["DecisionTelemetry"]


class DecisionTelemetry:
    """Counts decisions and writes them on the current span.

    Counters ``stabilitykit.events`` (by ``name``) and ``stabilitykit.decisions`` (by ``scope`` and ``state``); a span
    event ``stabilitykit.decision`` with the state, the rules that fired and the actions wherever the state changed or a
    rule fired. No attribute holds a conversation or what was said in it.

    Parameters
    ----------
    meter
        A ``Meter``; None: the one of the process's provider.

    Raises
    ------
    MissingExtra
        OpenTelemetry is not installed.
    """

    def __init__(self, meter: Any = None) -> None:
        try:
            self._trace: Any = importlib.import_module("opentelemetry.trace")
            metrics: Any = importlib.import_module("opentelemetry.metrics")
        except ImportError:
            raise MissingExtra("opentelemetry", "otel") from None
        meter = meter or metrics.get_meter("stabilitykit")
        self._events = meter.create_counter("stabilitykit.events", "1", "Events that a pack counts (emit_metric).")
        self._decisions = meter.create_counter("stabilitykit.decisions", "1", "Decisions by scope and state.")

    def note(self, decision: Decision) -> None:
        """Count a decision of ``evaluate`` or ``observe``. Never raises."""
        try:
            state, actions, fired = decision.state, decision.actions, decision.fired
            self._decisions.add(1, {"scope": decision.scope, "state": state})
            for action in actions:
                if action.name == EmitMetric.action:
                    self._events.add(1, {"name": EmitMetric.from_action(action).name})
            if fired or state != decision.previous:
                told = {"state": state, "previous": decision.previous, "fired": list(fired)}
                told["actions"] = [action.name for action in actions]
                event = {f"stabilitykit.{key}": value for key, value in told.items()}
                self._trace.get_current_span().add_event("stabilitykit.decision", event)
        except Exception as error:
            tell("telemetry_failed", where="opentelemetry", error=type(error).__name__)
