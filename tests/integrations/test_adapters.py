"""Every action has an adapter that exists and that a test runs."""

from __future__ import annotations

import ast
import importlib

import pytest

from stabilitykit.actions import ACTIONS
from stabilitykit.integrations.adapters import ADAPTERS
from stabilitykit.mitigations.applying import APPLIERS


@pytest.fixture(scope="module")
def called(root):
    """Gather the names that tests call, or hand over to be called: those in their code, not in their imports."""
    names = set()
    for path in (root / "tests").rglob("*.py"):
        if path.name != "test_adapters.py":
            tree = ast.parse(path.read_text(encoding="utf-8"))
            names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return names


@pytest.mark.capability("issue 5 §6: every action has a host adapter that a test runs")
@pytest.mark.parametrize("name", ACTIONS)
def test_adapter(called, name):
    """The adapter can be imported and called, and some test does."""
    module, _, attribute = ADAPTERS[name].partition(":")
    adapter = getattr(importlib.import_module(module), attribute)
    assert callable(adapter)
    # A text-level action is run by `decision.apply` through the table of appliers.
    assert APPLIERS.get(name) is adapter or attribute in called


def test_the_lists_are_the_same():
    """Adapters and actions are one list, in one order; what `decision.apply` does is among them."""
    assert list(ADAPTERS) == list(ACTIONS)
    assert set(APPLIERS) < set(ADAPTERS)
