"""The before and after in the how-to pages is what the script makes of the recording."""

from __future__ import annotations

import pytest

from docs.effects import EFFECTS, PLACE, filled, pages
from stabilitykit.actions import ACTIONS

ELSEWHERE = {"trim_context": "docs.trimmed", "inject_state_tokens": "benchmarks.recall"}
"""Actions whose before and after another script writes."""
NOT_RECORDED = {"release_memory", "lower_clocks", "pause_background", "resync_clock"}
"""What a host does on its machine: no recording holds it, and the pages show it by running it, if at all."""


@pytest.mark.capability(
    "issue 5 §6: before and after of each mitigation on requests, conversations and caches, by script"
)
@pytest.mark.parametrize("page", list(pages()), ids=lambda page: page.stem)
def test_effects_are_fresh(page):
    """Each page says what `python -m docs.effects` would write."""
    text = page.read_text(encoding="utf-8")
    assert filled(text) == text


def test_every_effect_is_shown():
    """No effect without its page, none on two pages."""
    shown = [found[2] for page in pages() for found in PLACE.finditer(page.read_text(encoding="utf-8"))]
    assert sorted(shown) == sorted(EFFECTS)


def test_every_action_has_its_before_and_after():
    """Those that no recording holds are named."""
    assert {*EFFECTS, *ELSEWHERE, *NOT_RECORDED} == set(ACTIONS)
    assert len(EFFECTS) + len(ELSEWHERE) + len(NOT_RECORDED) == len(ACTIONS)
