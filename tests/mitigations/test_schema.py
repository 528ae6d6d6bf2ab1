"""The published JSON Schema of actions is fresh, and decisions keep to it."""

from __future__ import annotations

import json

import jsonschema
import pytest

from stabilitykit import Engine, Turn
from stabilitykit.actions import ACTIONS
from stabilitykit.mitigations.schema import actions_schema


def is_valid(value):
    """Judge one action by the schema."""
    return bool(jsonschema.Draft202012Validator(actions_schema()).is_valid(value))


@pytest.mark.capability("issue 5 §6: every action has a JSON Schema")
def test_published_schema_is_fresh(root):
    """The file in the docs is what the code says (`python -m stabilitykit.mitigations.schema > FILE`)."""
    published = (root / "docs" / "reference" / "actions.schema.json").read_text(encoding="utf-8")
    assert json.loads(published) == actions_schema()
    jsonschema.Draft202012Validator.check_schema(actions_schema())


@pytest.mark.parametrize("name", ACTIONS)
def test_each_action(name):
    """The defaults are valid; a parameter too many, one left out, and a text for a number are not."""
    params = {p.name: p.default for p in ACTIONS[name].params}
    assert is_valid({"name": name, "params": params, "source": "rule:a"})
    assert not is_valid({"name": name, "params": {**params, "more": 1}})
    for param in ACTIONS[name].params:
        assert not is_valid({"name": name, "params": {k: v for k, v in params.items() if k != param.name}})
        assert not is_valid({"name": name, "params": {**params, param.name: None}})


def test_a_decision_keeps_to_it():
    """What a decision of a shipped pack asks for is valid as `to_dict` writes it."""
    decision = Engine.load("chat").evaluate(Turn(session_id="c-1", error="context_overflow"))
    assert decision.to_dict()["actions"]
    assert all(is_valid(action) for action in decision.to_dict()["actions"])
