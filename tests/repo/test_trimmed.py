"""The before and after of trimming is what the code does."""

from __future__ import annotations

import pytest

from docs import trimmed


@pytest.mark.capability("issue 5 §1: a how-to page with a before and after, written by a script from a real recording")
def test_the_page_is_fresh():
    """The block of the page is the one that the script writes."""
    text = trimmed.PAGE.read_text(encoding="utf-8")
    assert trimmed.written(text) == text
