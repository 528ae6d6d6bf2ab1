from __future__ import annotations

import hashlib
import unicodedata
from pathlib import Path

import pytest

import stabilitykit
from stabilitykit.cli.probe.prompts import shipped_prompts


def scripts(text):
    """Give the scripts of its letters."""
    return {unicodedata.name(c).split()[0] for c in text if c.isalpha()}


@pytest.mark.capability("issue 4 §5: probe URL: multi-turn load with one fixed prompt set, whose hash it names")
def test_the_set():
    """Eight topics of twelve messages in Latin, Chinese, Japanese and Korean; the hash is that of the file."""
    found = shipped_prompts()
    assert [len(topic.user) for topic in found.topics] == [12] * 8
    words = set().union(*(scripts(message) for topic in found.topics for message in topic.user))
    assert {"LATIN", "CJK", "HIRAGANA", "HANGUL"} <= words
    path = Path(stabilitykit.__file__).parent / "data" / "prompts" / "eight_topics.json"
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_conversations_of_one_topic_differ():
    """The ninth conversation has the first topic and another beginning; messages go round and round."""
    found = shipped_prompts()
    assert found.user(8, 0) == found.user(0, 0) == found.user(0, 12)
    beginnings = {found.system(number)[:16] for number in (0, 8, 16)}
    assert len(beginnings) == 3
