"""The seventeen patterns of decay: each has a rule in a shipped pack, and the page is written from the rules' tags."""

from __future__ import annotations

import pytest

from docs.patterns import PATTERNS, PREFIX, page, reached, rules_of
from stabilitykit.detectors import DETECTORS
from stabilitykit.rules.load import load_pack
from stabilitykit.rules.shipped import shipped_names


def test_there_are_seventeen():
    """As many as the document announces."""
    assert len(PATTERNS) == 17


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.capability("issue 3 §3: each of the 17 patterns of decay is a rule of a shipped pack, in a table of tags")
def test_every_pattern_has_a_rule_that_acts(pattern):
    """Some shipped rule calls it, tells the host something, and is on the page with pack, actions and state."""
    rules = list(rules_of(pattern))
    assert rules
    written = page()
    for pack, rule in rules:
        assert rule.do, rule.id
        (line,) = (text for text in written.splitlines() if f"| `{rule.id}` | `{pack.name}` |" in text)
        assert f"`{reached(pack, rule)}`" in line
        assert all(f"`{action.name}`" in line for action in rule.do)


def test_no_tag_is_misspelt():
    """Every tag that begins like a pattern's is one."""
    tags = {t for name in shipped_names() for r in load_pack(name, detectors=DETECTORS).rules for t in r.tags}
    assert {t for t in tags if t.startswith(PREFIX)} == {PREFIX + name for name in PATTERNS}


def test_a_critical_rule_breaks_and_info_changes_nothing():
    """The state beside a rule is where its machine goes when that rule alone matches."""
    chat = load_pack("chat", detectors=DETECTORS)
    states = {r.severity: reached(chat, r) for r in chat.rules}
    assert states == {"critical": "broken", "warning": "warning", "info": "healthy"}


@pytest.mark.capability(
    "issue 3 §3: `chat` holds the stable and incubating patterns of sessions and replicas, no sandbox"
)
def test_chat_holds_the_patterns_of_sessions_and_replicas():
    """All but those of the GPU and of masks (they need a model's insides), and what is sandbox."""
    chat = load_pack("chat", detectors=DETECTORS)
    assert not [r.id for r in chat.rules if "sandbox" in r.tags]
    held = {t.removeprefix(PREFIX) for r in chat.rules for t in r.tags if t.startswith(PREFIX)}
    assert set(PATTERNS) - held == {"entropy-surge", "gpu-pressure", "mask-misalignment"}
