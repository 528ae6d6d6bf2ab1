from __future__ import annotations

import pytest

from benchmarks.record.client import post_json
from stabilitykit import Engine, Turn
from stabilitykit.mitigations.context import ContextIndex, trim
from tests.servers.llamacpp import ServerSettings

WINDOW, ANSWER = 768, 8
SYSTEM = {"role": "system", "content": "You are a helpful assistant. Answer in one short sentence."}
FACTS = ("My dog is called Pickles. Remember that.", "My sister Joan lives in Bristol. Remember that.")
TALK = (
    "Tell me why the sea is salty and why lakes are not, as far as people know today.",
    "Which vegetables grow well in a small shady garden that faces north in a cool country?",
    "How do I fold a fitted sheet so that it lies flat in the cupboard with the others?",
    "What should I think of before I paint the wooden window frames of an old house?",
    "Why does bread that was baked yesterday taste better when it is toasted?",
)
QUESTIONS = (("What is the name of my dog?", "Pickles"), ("In which city does my sister Joan live?", "Bristol"))


def send(port, messages, most=ANSWER):
    """Ask for the likeliest answer."""
    return post_json(port, "/v1/chat/completions", {"messages": messages, "max_tokens": most, "temperature": 0})


def turn_of(told, number):
    """Give the Turn that a host would report."""
    if "error" in told:
        return Turn(session_id="c", turn_id=number, error="context_overflow", context_window_tokens=WINDOW)
    usage = told["usage"]
    return Turn(
        session_id="c",
        turn_id=number,
        input_tokens=usage["prompt_tokens"],
        output_tokens=usage["completion_tokens"],
        context_window_tokens=WINDOW,
    )


def talk(port, engine, turns):
    """Hold a conversation; give what would be sent next, the answers (None: refused), and how often it was trimmed."""
    messages, answers, trims = [SYSTEM], [], 0
    for k, text in enumerate(turns, 1):
        messages = [*messages, {"role": "user", "content": text}]
        told = send(port, messages)
        answers.append(None if "error" in told else told["choices"][0]["message"]["content"])
        if answers[-1] is None:
            break
        messages = [*messages, {"role": "assistant", "content": answers[-1]}]
        if engine is not None:
            decision = engine.evaluate(turn_of(told, k))
            messages, receipt = decision.apply(messages, count_tokens=lambda text: counted(port, text))
            trims += "trim_context" in receipt.done
    return messages, answers, trims


def counted(port, text):
    """Ask the server for the tokens of a text."""
    return len(post_json(port, "/tokenize", {"content": text})["tokens"])


@pytest.mark.slow
@pytest.mark.capability(
    "issue 5 §1: a llama.cpp conversation overflows without stabilitykit and carries on with it, with its first facts"
)
def test_a_conversation_that_overflows_carries_on(llama):
    """Refused without us; with us it is trimmed when 90 % are full, and the facts of its first turns are still sent."""
    port = llama(ServerSettings(n_ctx=WINDOW)).port
    turns = [*FACTS, *(TALK[k % len(TALK)] for k in range(23))]
    _, answers, _ = talk(port, None, turns)
    assert answers[-1] is None
    assert len(answers) < len(turns)
    messages, answers, trims = talk(port, Engine.load("context"), turns)
    assert None not in answers
    assert len(answers) == len(turns)
    assert trims >= 1
    for question, fact in QUESTIONS:
        asked = [*messages, {"role": "user", "content": question}]
        assert any(fact in m["content"] for m in messages)
        short = trim(asked, WINDOW // 3, index=ContextIndex(lambda text: counted(port, text))).messages
        assert any(fact in m["content"] for m in short)
        assert "error" not in send(port, short)
