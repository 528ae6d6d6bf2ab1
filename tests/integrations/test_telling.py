"""Integrations speak by one function, and a broken log costs nobody a reply."""

from __future__ import annotations

import structlog

from stabilitykit.integrations.telling import tell


def test_one_way_to_speak(root):
    """No other file of the integrations, nor the rollout's record, has a logger of its own."""
    folder = root / "stabilitykit"
    files = [*(folder / "integrations").rglob("*.py"), *(folder / "rollout").rglob("*.py")]
    assert [path.name for path in files if "structlog" in path.read_text(encoding="utf-8")] == ["telling.py"]


def test_plain_logging(caplog):
    """Where structlog is not set up, the standard logger says it."""
    tell("action_failed", action="throttle")
    assert caplog.messages == ["action_failed action=throttle"]


def test_a_broken_log(monkeypatch):
    """A pipeline that raises is swallowed."""

    def broken(*_):
        raise RuntimeError

    monkeypatch.setattr(structlog, "is_configured", broken)
    tell("action_failed")
