"""The page: complete in itself, safe, readable, bounded."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from stabilitykit.cli.report import Report
from stabilitykit.engine import Engine
from stabilitykit.engine.replay import replay
from stabilitykit.sample import Sample
from stabilitykit.turn import Turn

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'--></style></svg><svg onload=alert(1)>",
    "{{ 7*7 }}{% include '/etc/passwd' %}",
    "javascript:alert(1)",
    "</title><iframe src=//evil.example>",
    "\u202e\u2066gpj.exe\x00\x1b[2J",
    "<![CDATA[x]]>&amp;&#x3c;",
)
VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """Reads tags and checks that they are balanced."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.texts = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        """Note a tag."""
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        """Note an empty tag."""
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        """Check that it closes what is open."""
        assert self.open.pop() == tag

    def handle_data(self, data):
        """Note text."""
        self.texts.append(data)


def render(pack, entries, name="log.jsonl"):
    """Replay entries and render the page."""
    engine = Engine.load(str(pack), compiled=False)
    report = Report(engine.pack)
    for step in replay(engine, entries):
        report.add(step)
    return report.render([Path(name)], 0)


def conversation(session, turns):
    """Make a conversation that gets into trouble half-way."""
    return [
        Turn(session_id=session, ttft_ms=300.0 + k % 7, itl_ms=80.0 if turns // 2 < k < turns // 2 + 5 else 30.0)
        for k in range(turns)
    ]


@pytest.mark.capability("issue 2 §1: the HTML report is one file without any external request, whatever the log holds")
def test_asks_for_nothing(pack):
    """No tag and no attribute that loads anything; the policy forbids it besides."""
    text = render(pack, conversation("c-1", 30))
    page = Page(text)
    assert not page.open
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    assert not {"src", "href", "xlink:href", "srcset", "action"} & {name for name, _ in page.attributes}
    assert not re.search(r"https?:|url\(|@import", text)
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_are_text(pack, hostile):
    """Names of sessions, replicas and files are shown and never run."""
    entries = [
        *conversation(hostile, 12),
        Sample(replica=hostile, timestamp_s=1.0, signals={"waiting_requests": 9.0}),
        Turn(session_id=hostile, itl_ms=-1.0),
    ]
    page = Page(render(pack, entries, name=hostile.replace("/", "_")))
    assert not page.open
    assert not {"script", "img", "iframe"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "49" not in "".join(page.texts[:3])


@pytest.mark.capability("issue 2 §1: the HTML report: inline SVG charts and a table of matches")
def test_charts_have_titles(pack):
    """Every chart is an image with a title and a description that its label names."""
    text = render(pack, [*conversation("a", 12), *conversation("b", 3)])
    assert text.count('role="img"') == 2
    for labels in re.findall(r'aria-labelledby="([^"]+)"', text):
        assert all(f'id="{label}"' in text for label in labels.split())
    assert "Signals and state of conversation a" in text


def test_dark_and_light(pack):
    """Both schemes are there."""
    text = render(pack, conversation("a", 2))
    assert "prefers-color-scheme: dark" in text


@pytest.mark.capability("issue 2 §1: the HTML report: inline SVG charts and a table of matches")
def test_table_names_rule_value_threshold_margin_streak_and_actions(pack):
    """The table holds what a reader needs to judge a match."""
    texts = [t.strip() for t in Page(render(pack, conversation("a", 12))).texts]
    for part in ("turns 9-11", "itl-slow", "fired", "80 ms", "> 60 ms", "20 ms", "4/2", "throttle", "switch_model"):
        assert part in texts


def test_ten_thousand_turns_stay_small(pack):
    """A long log gives a page of at most a few MB."""
    entries = [turn for k in range(20) for turn in conversation(f"s{k}", 500)]
    text = render(pack, entries)
    assert len(text) < 3_000_000
    assert "10,000" in text


def test_many_conversations_are_bounded(pack):
    """Only the worst conversations are drawn, and the page says so."""
    text = render(pack, [*(Turn(session_id=f"s{k}") for k in range(60)), *conversation("the-bad-one", 12)])
    assert text.count('role="img"') == 24
    assert "37 more not drawn" in text
    assert "the-bad-one" in text


def test_nothing_at_all(pack):
    """An empty log gives a page too."""
    assert "There are no turns" in render(pack, [])
