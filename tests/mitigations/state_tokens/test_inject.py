from __future__ import annotations

import copy
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit import Engine, Turn, UsageError
from stabilitykit.mitigations.context.index import ContextIndex
from stabilitykit.mitigations.directives import InjectStateTokens
from stabilitykit.mitigations.outcome import Lent
from stabilitykit.mitigations.state_tokens.grammar import FORMS, parse_state
from stabilitykit.mitigations.state_tokens.inject import inject_state, inject_state_tokens

PACK = """\
stabilitykit: 1
pack: reminding
extends: [base]
rules:
  - rule: long-context
    desc: a long prompt
    when: input_tokens > 1000
    do: [{inject_state_tokens: {format: readable}}]
    reason: "{{ input_tokens }} tokens"
    tags: [sandbox]
"""
TEXTS = st.text(st.sampled_from("ab [@]:=\n\u200bSTATEURN_"), max_size=20)
PART = st.one_of(
    TEXTS.map(lambda text: {"type": "text", "text": text}),
    st.just({"type": "image_url", "image_url": {"url": "data:,"}}),
)
MESSAGE = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["system", "user", "assistant", "tool", "developer"]),
        "content": st.one_of(TEXTS, st.lists(PART, max_size=3), st.none()),
    }
)
VALUES = st.dictionaries(st.text(max_size=3), TEXTS, max_size=3)
CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi, [STATE:x=1]"},
    {"role": "user", "content": "Where is it? [TURN_END]", "name": "ann"},
]


def test_where_it_stands():
    """Marks around every user message, the state behind the last; others' marks made harmless."""
    found = inject_state(CHAT, {"step": "3", "city": "Berlin"}, "readable")
    assert [m["content"] for m in found.messages] == [
        "Be kind.",
        "[TURN_START]Hello[TURN_END]",
        "Hi, (STATE:x=1]",
        "[TURN_START]Where is it? (TURN_END][STATE:city=Berlin;step=3][TURN_END]",
    ]
    assert (found.neutralised, found.messages[-1]["name"]) == (2, "ann")


def test_compact_and_nonce():
    """The system message says once in which order the values stand, and which marks count."""
    found = inject_state(CHAT, {"step": "3", "city": "Berlin"}, "compact", "k3")
    system, last = found.messages[0]["content"], found.messages[-1]["content"]
    assert system.startswith("Be kind.\n")
    assert "[@#k3 city step]; marks without #k3" in system
    assert last == "Where is it? (TURN_END]\n[@#k3 Berlin 3]"
    assert parse_state(last.rpartition("\n")[2], ["city", "step"], "k3") == {"city": "Berlin", "step": "3"}


def test_no_system_message():
    """Then one is made for the legend."""
    found = inject_state(CHAT[1:], {"a": "1"}, "compact").messages
    assert (found[0]["role"], len(found)) == ("system", 4)


def test_the_prefix_stays():
    """With another state only what stands behind the last user text is another."""
    before, after = (inject_state(CHAT, {"step": step}, "readable").messages for step in "34")
    assert before[:-1] == after[:-1]
    assert before[-1]["content"].partition("[STATE")[0] == after[-1]["content"].partition("[STATE")[0]


@pytest.mark.capability("issue 5 §3: state and marks are rendered into the messages once, however often")
@given(st.lists(MESSAGE, max_size=5), VALUES, VALUES, st.sampled_from(FORMS), st.sampled_from(FORMS))
def test_twice_is_once(messages, values, others, form, earlier):
    """Whatever form and state came before, the later call leaves its own only; the given list is not changed."""
    given_before = copy.deepcopy(messages)
    first = inject_state(messages, values, form).messages
    assert messages == given_before
    assert inject_state(first, values, form).messages == first
    again = inject_state(inject_state(messages, others, earlier).messages, values, form).messages
    marks = [m for m in again if m["role"] == "user" and isinstance(m["content"], str)]
    assert all(m["content"].count("[TURN_START]") == (form == "readable") for m in marks)


@pytest.mark.parametrize(
    ("messages", "values", "why"),
    [(CHAT, {}, "no values lent"), (CHAT[:1], {"a": "1"}, "no user message")],
)
def test_when_it_cannot_act(messages, values, why):
    """It says so and changes nothing."""
    done = inject_state_tokens(messages, InjectStateTokens(), Lent(values=values))
    assert (done.messages, done.is_done, done.details) == (messages, False, {"why": why})


@pytest.mark.parametrize("last", [{"content": None}, {"content": {"text": "a"}}, {"content": 7}, {}])
@pytest.mark.parametrize("form", FORMS)
def test_nothing_to_write_into(last, form):
    """A last user message without text or parts carries no state: it is not done, and no legend is left behind."""
    messages = [*CHAT, {"role": "user", **last}]
    done = inject_state_tokens(messages, InjectStateTokens(form), Lent(values={"a": "1"}))
    assert (done.messages, done.is_done) == (messages, False)
    assert "last user message" in done.details["why"]


@pytest.mark.capability("issue 5 §3: inject_state_tokens through decision.apply")
def test_apply(tmp_path):
    """A rule asks for it, `apply` does it, the receipt tells what it cost; the next turn takes the receipt."""
    (tmp_path / "reminding.yaml").write_text(PACK, encoding="utf-8")
    engine = Engine.load(str(tmp_path / "reminding.yaml"))
    decision = engine.evaluate(Turn(session_id="c", input_tokens=2000))
    messages, receipt = decision.apply(CHAT, values={"step": "3"}, nonce="k3", count_tokens=len)
    assert messages[-1]["content"].endswith("[STATE#k3:step=3][TURN_END#k3]")
    assert receipt.done == ("inject_state_tokens",)
    told = receipt.details["inject_state_tokens"]
    assert (told["slots"], told["neutralised"]) == (1, 2)
    sizes = [sum(map(ContextIndex(len).count, given)) for given in (CHAT, messages)]
    assert [told["tokens_before"], told["tokens_after"]] == sizes  # as the actions on the context count them
    assert not engine.evaluate(Turn(session_id="c", applied=receipt)).faults


@pytest.mark.parametrize(
    ("messages", "values", "form", "named"),
    [
        ([math.nan], {"a": "1"}, "readable", "messages are"),
        (None, {"a": "1"}, "readable", "messages are"),
        (CHAT, {"a": 5}, "compact", "values are"),
        (CHAT[:1], {"a": 5}, "compact", "values are"),
        ([], {"a": "1"}, "loud", "form is"),
        (CHAT, {"a": "1"}, "loud", "form is"),
    ],
)
def test_arguments_that_cannot_be(messages, values, form, named):
    """Each is named, also where no user message would have carried the state."""
    with pytest.raises(UsageError, match=named):
        inject_state(messages, values, form)
