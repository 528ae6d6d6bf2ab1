"""The error codes in one sentence each."""

from __future__ import annotations

from docs.errors import meanings
from stabilitykit.rules.codes import CODES


def test_the_page_says_the_same():
    """The table on the page of the rule language and the command line have the same sentences."""
    assert dict(CODES) == meanings()
