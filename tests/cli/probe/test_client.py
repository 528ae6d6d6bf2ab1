from __future__ import annotations

import pytest

from stabilitykit.cli.probe.client import Answer, server_of
from stabilitykit.turn import Turn


def test_gaps_of_chunks_with_several_tokens():
    """A gap is divided by the tokens of the chunk that ends it."""
    chunks = [(0, 1), (10_000_000, 1), (40_000_000, 3)]
    answer = Answer(Turn(session_id="c"), "", 0, 40_000_000, chunks)
    assert list(answer.gaps_ms()) == pytest.approx([10.0] * 4)


@pytest.mark.parametrize("url", ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/chat/completions"])
def test_any_form_of_an_address(url):
    """With or without the path of the API."""
    assert server_of(url) == "http://h:1"
