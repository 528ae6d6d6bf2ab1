from __future__ import annotations

import sys

import pytest

from stabilitykit.errors import MissingExtra
from stabilitykit.integrations.langchain import trim_messages
from stabilitykit.mitigations.context import Policy


def chat():
    """Give a conversation with tools and a summary's worth of talk, in LangChain's classes."""
    messages = pytest.importorskip("langchain_core.messages", reason="langchain-core is not installed")
    found = [messages.SystemMessage("You keep the log of a ship.")]
    for k in range(30):
        call = {"name": "look", "args": {"at": k}, "id": f"c{k}", "type": "tool_call"}
        found += [
            messages.HumanMessage(f"Day {k}: what does the log say of the sea?"),
            messages.AIMessage("", tool_calls=[call]),
            messages.ToolMessage(f"reservation HAT{k}: calm", tool_call_id=f"c{k}"),
            messages.AIMessage(f"Day {k} was calm."),
        ]
    return [*found, messages.HumanMessage("What of reservation HAT3?")]


@pytest.mark.capability("issue 5 §1: LangChain messages are trimmed with the same guarantees")
def test_trim_messages():
    """The objects stay the same, pairs stay together, the system prompt and the question stay."""
    given = chat()
    done = trim_messages(given, 300)
    assert len(done) < len(given)
    assert done[0] is given[0]
    assert done[-1] is given[-1]
    assert all(any(m is g for g in given) for m in done)
    calls = [c["id"] for m in done for c in getattr(m, "tool_calls", [])]
    assert calls == [m.tool_call_id for m in done if m.type == "tool"]


def test_summary():
    """What was dropped is summarised in a human message."""
    done = trim_messages(chat(), 300, policy=Policy(summary_tokens=80))
    assert (done[1].type, done[1].name) == ("human", "conversation_summary")


def test_missing_extra(monkeypatch):
    """Without langchain-core the extra is named."""
    monkeypatch.setitem(sys.modules, "langchain_core.messages", None)
    with pytest.raises(MissingExtra, match="langchain"):
        trim_messages([], 10)
