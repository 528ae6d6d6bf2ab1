"""Counters of the real client, as a server would scrape them."""

from __future__ import annotations

import sys

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from stabilitykit import Turn
from stabilitykit.errors import MissingExtra
from stabilitykit.integrations.prometheus import DecisionCounters
from tests.integrations.decisions import asking, slow


@pytest.mark.capability("issue 5 §6: emit_metric counts in Prometheus, by names of the pack only")
def test_counters(tmp_path):
    """Each emit_metric, decision and firing is counted once; no label holds a conversation."""
    registry = CollectorRegistry()
    counters = DecisionCounters(registry)
    engine = asking(tmp_path, "{emit_metric: {name: slow_answer}}", "{emit_metric: {name: seen}}", "{throttle: {}}")
    for name in ("user-1", "user-2"):
        counters.note(slow(engine, name))
    counters.note(engine.evaluate(Turn(session_id="user-1", itl_ms=10.0)))
    page = generate_latest(registry).decode()
    for line in (
        'stabilitykit_events_total{name="slow_answer"} 2.0',
        'stabilitykit_events_total{name="seen"} 2.0',
        'stabilitykit_decisions_total{scope="session",state="healthy"} 3.0',
        'stabilitykit_rules_fired_total{rule="slow"} 2.0',
    ):
        assert line in page
    assert "user" not in page


def test_it_never_raises(caplog):
    """What is no decision is told in the log."""
    DecisionCounters(CollectorRegistry()).note(None)  # type: ignore[arg-type]
    assert "where=prometheus" in caplog.text


def test_without_the_package(monkeypatch):
    """The extra is named."""
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingExtra, match=r"stabilitykit\[prometheus\]"):
        DecisionCounters()
