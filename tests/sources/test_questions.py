from __future__ import annotations

import pytest

from stabilitykit.sources.openai import TurnRecorder
from stabilitykit.sources.questions import count_questions, user_questions
from stabilitykit.turn import is_missing


@pytest.mark.parametrize(("text", "count"), [("", 0), ("No.", 0), ("Was? Wo?", 2), ("在哪里？", 1), ("أين؟", 1)])
def test_marks_of_several_scripts(text, count):
    """ASCII, full-width and Arabic question marks count."""
    assert count_questions(text) == count


def test_the_newest_user_message_is_counted():
    """Neither earlier messages nor the answers; parts of text count, and a payload is as good as its messages."""
    asked = {"role": "user", "content": [{"type": "text", "text": "Why?"}, {"type": "text", "text": "How?"}]}
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "???"}, asked]
    tool = {"role": "tool", "tool_call_id": "1", "content": "?????"}
    assert user_questions(messages) == user_questions({"messages": [*messages, tool]}) == 2


@pytest.mark.parametrize("request_", [None, "Why?", 3, {}, [], {"messages": "?"}, ["?"], [{"role": "system"}]])
def test_no_user_message_is_unknown(request_):
    """Unknown is not zero, and no shape of a request raises."""
    assert user_questions(request_) is None
    call = TurnRecorder().request("c-1", request_)
    call.end()
    assert is_missing(call.turn().user_questions)


@pytest.mark.capability("issue 6: a recorder counts the question marks of the user's message for `drift_probe`")
def test_a_recorder_tells_the_number():
    """From the request to the Turn."""
    call = TurnRecorder().request("c-1", [{"role": "user", "content": "Is it open? When?"}])
    call.end()
    assert call.turn().user_questions == 2
