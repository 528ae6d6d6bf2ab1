"""The before and after in the how-to pages is what the script makes of the recording."""

from __future__ import annotations

import pytest

from docs.effects import EFFECTS, PLACE, filled, pages


@pytest.mark.capability("issue 5 §6: before and after of each service mitigation, by script from a real recording")
@pytest.mark.parametrize("page", list(pages()), ids=lambda page: page.stem)
def test_effects_are_fresh(page):
    """Each page says what `python -m docs.effects` would write."""
    text = page.read_text(encoding="utf-8")
    assert filled(text) == text


def test_every_effect_is_shown():
    """No effect without its page, none on two pages."""
    shown = [found[2] for page in pages() for found in PLACE.finditer(page.read_text(encoding="utf-8"))]
    assert sorted(shown) == sorted(EFFECTS)
