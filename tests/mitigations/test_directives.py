"""The classes of the actions are the actions of the language."""

from __future__ import annotations

import pickle
import re
from typing import Any

import attrs
import pytest

from stabilitykit.actions import ACTIONS, Action
from stabilitykit.errors import UsageError
from stabilitykit.mitigations.directives import MITIGATIONS, RefuseNew, TrimContext, directive

DESIGN = (
    "trim_context reset_context insert_summary inject_state_tokens switch_model canned_reply throttle refuse_new "
    "send_to_review evict_kv tier_kv quantize_kv compensate_positions repair_mask rollback_snapshot resync_clock "
    "pause_background lower_clocks release_memory sample_diagnostics emit_metric"
).split()
PYTHON = {"number": float, "count": int, "bool": bool, "word": str, "enum": str}


@pytest.mark.capability("issue 5 §6: every action of the language has a class; a test fails if the two lists differ")
def test_lists_are_the_same():
    """The design's actions, the language's table and the classes are one list, the latter two in one order."""
    assert sorted(DESIGN) == sorted(ACTIONS)
    assert list(MITIGATIONS) == list(ACTIONS)


@pytest.mark.parametrize("name", ACTIONS)
def test_class_says_what_the_table_says(name):
    """Parameters, their order, defaults and types are the table's."""
    fields, params = attrs.fields(MITIGATIONS[name]), ACTIONS[name].params
    assert [(f.name, f.default) for f in fields] == [(p.name, p.default) for p in params]
    for field, param in zip(fields, params, strict=True):
        assert field.type is PYTHON[param.kind] is type(field.default)
    assert re.sub(r"(?<!^)([A-Z])", r"_\1", MITIGATIONS[name].__name__).lower() == name


@pytest.mark.parametrize("name", ACTIONS)
def test_defaults_come_from_an_empty_action(name):
    """An action without parameters has the defaults; one of all parameters comes back as it went in."""
    read: Any = directive(Action(name, {}))
    assert read == MITIGATIONS[name]()
    assert directive(Action(name, attrs.asdict(read))) == read
    assert pickle.loads(pickle.dumps(read)) == read
    with pytest.raises(AttributeError):
        read.more = 1


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("refuse_new", {"retry_after_s": -1.0}),
        ("refuse_new", {"retry_after_s": float("nan")}),
        ("refuse_new", {"retry_after_s": True}),
        ("throttle", {"max_concurrency": 1.5}),
        ("throttle", {"max_concurrency": 10**400}),
        ("throttle", {"max_concurrency": float("inf")}),
        ("throttle", {"max_concurrency": 0}),
        ("trim_context", {"summary": 1}),
        ("inject_state_tokens", {"format": "loud"}),
        ("canned_reply", {"name": 7}),
        ("quantize_kv", {"bits": 64}),
        ("repair_mask", {"rows": 3}),
    ],
)
def test_what_the_table_does_not_allow(name, params):
    """A wrong kind, a value outside the domain, and a parameter that does not exist are the host's mistake."""
    with pytest.raises(UsageError, match=name):
        directive(Action(name, params))


def test_of_another_action():
    """A class reads its own action only; an action of a pack has no class."""
    with pytest.raises(UsageError, match="trim_context"):
        RefuseNew.from_action(Action("trim_context", {}))
    assert directive(Action("page_oncall", {"team": "chat"})) is None
    assert TrimContext.from_action(Action("trim_context", {"budget": 0.25})).budget == 0.25
