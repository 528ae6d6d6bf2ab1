"""The glossary has every word of the library, with its Chinese term."""

from __future__ import annotations

import re

import pytest

NOUNS = (
    "Turn Sample Session Scope Signal Detector Rule Pack Match State Action Mitigation Receipt Reason Decision "
    "Fault Case"
)
VERBS = "evaluate observe update match step plan load replay apply"
UNITS = "_ms _us _tokens _ratio _count _c _per_s _nats _bits is_ has_"
BREAKER = "closed open half-open"


@pytest.fixture(scope="module")
def rows(root):
    """Give the rows of all tables: word, Chinese, meaning."""
    text = (root / "docs" / "glossary.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return [row for row in cells if row[0] not in ("word", "---")]


def test_every_word_is_there(rows):
    """Nouns, verbs, units and the breaker's words each have a row."""
    words = {word.strip("` ") for row in rows for word in row[0].split(",")}
    assert not {*NOUNS.split(), *VERBS.split(), *UNITS.split(), *BREAKER.split()} - words


def test_every_row_has_a_chinese_term(rows):
    """The second column is Chinese, and no word stands in two rows."""
    assert not [row[0] for row in rows if not re.search("[\u4e00-\u9fff]", row[1])]
    words = [row[0] for row in rows]
    assert len(words) == len(set(words))
