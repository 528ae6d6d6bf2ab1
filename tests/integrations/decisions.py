"""Decisions of real packs that ask for given actions."""

from __future__ import annotations

from stabilitykit import Engine, Turn

HEAD = "stabilitykit: 1\npack: asking\nmachine: {initial: healthy, states: [{state: healthy}], transitions: []}\n"


def asking(folder, *actions):
    """Give an engine whose turns with a slow answer (`itl_ms` over 80) ask for actions, written as in a pack."""
    path = folder / "asking.yaml"
    rules = f"rules: [{{rule: slow, when: itl_ms > 80 ms, do: [{', '.join(actions)}], tags: [sandbox]}}]\n"
    path.write_text(HEAD + rules, encoding="utf-8")
    return Engine.load(str(path))


def slow(engine, session_id="c-1", turn_id=None, tenant=""):
    """Give the decision on a slow turn; the turn before it is quick, so that the rule fires."""
    before = None if turn_id is None else turn_id - 1
    engine.evaluate(Turn(session_id=session_id, itl_ms=10.0, turn_id=before, tenant=tenant))
    return engine.evaluate(Turn(session_id=session_id, itl_ms=100.0, turn_id=turn_id, tenant=tenant))
