"""A page for each action: parameters, conflicts, adapter, and where the shipped packs ask for it."""

from __future__ import annotations

import pytest

from docs import action_pages
from stabilitykit.actions import ACTIONS


@pytest.mark.capability(
    "issue 5 §6: every action has a docs page, the table of conflicts is made from the action table"
)
@pytest.mark.parametrize("name", ACTIONS)
def test_page_is_complete(name):
    """Every section is there and filled, every parameter has its row, and a how-to page is linked."""
    text = action_pages.pages()[f"action-{name}"]
    sections = text.split("\n## ")
    assert [s.partition("\n")[0] for s in sections[1:]] == [
        "Parameters",
        "Conflicts",
        "Who carries it out",
        "Detectors that take note of its receipt",
        "Rules and states of the shipped packs that ask for it",
    ]
    assert all(body.partition("\n")[2].strip() for body in sections)
    assert all(f"| `{param.name}` |" in sections[1] for param in ACTIONS[name].params)
    assert "../../how-to/" in sections[3]


def test_conflicts_are_stated_once():
    """The overview lists every action that removes another, and both pages of a pair show the row."""
    rows = list(action_pages.conflicts())
    assert ("`canned_reply`", "`switch_model`") in [row[:2] for row in rows]
    assert all(f"| {stays} | {instead} |" in action_pages.overview() for stays, instead, _ in rows)
    pages = action_pages.pages()
    assert "| `reset_context` | `compensate_positions` `repair_mask` |" in pages["action-repair_mask"]
    assert "## Conflicts\n\nNone." in pages["action-throttle"]
