"""The real SDK with readers in memory: counters, and events on the host's span."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from stabilitykit import Turn
from stabilitykit.errors import MissingExtra
from stabilitykit.integrations.opentelemetry import DecisionTelemetry
from tests.integrations.decisions import asking, slow

pytest.importorskip("opentelemetry.sdk")
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@pytest.mark.capability("issue 5 §6: emit_metric counts in OpenTelemetry, and a decision is an event on the open span")
def test_counters_and_events(tmp_path):
    """Two decisions count twice; the one on which a rule fired is on the span, without the conversation."""
    reader, spans = InMemoryMetricReader(), InMemorySpanExporter()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    telemetry = DecisionTelemetry(MeterProvider([reader]).get_meter("test"))
    engine = asking(tmp_path, "{emit_metric: {name: slow_answer}}", "{throttle: {}}")
    with tracers.get_tracer("test").start_as_current_span("chat"):
        telemetry.note(slow(engine, "user-1"))
        telemetry.note(engine.evaluate(Turn(session_id="user-1", itl_ms=10.0)))
    (span,) = spans.get_finished_spans()
    (event,) = span.events
    assert event.name == "stabilitykit.decision"
    assert dict(event.attributes or {})["stabilitykit.actions"] == ("throttle", "emit_metric")
    data: Any = reader.get_metrics_data()
    found = {m.name: m for m in data.resource_metrics[0].scope_metrics[0].metrics}
    assert [p.value for p in found["stabilitykit.decisions"].data.data_points] == [2]
    assert [dict(p.attributes) for p in found["stabilitykit.events"].data.data_points] == [{"name": "slow_answer"}]
    assert "user" not in str(event.attributes)


def test_it_never_raises(caplog):
    """What is no decision is told in the log."""
    DecisionTelemetry().note(None)  # type: ignore[arg-type]
    assert "where=opentelemetry" in caplog.text


def test_without_the_package(monkeypatch):
    """The extra is named."""
    monkeypatch.setitem(sys.modules, "opentelemetry.metrics", None)
    with pytest.raises(MissingExtra, match=r"stabilitykit\[otel\]"):
        DecisionTelemetry()
