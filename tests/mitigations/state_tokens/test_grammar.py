from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.recall import EXAMPLES, marks_cost, tokenizers
from stabilitykit import UsageError
from stabilitykit.mitigations.state_tokens.grammar import (
    FORMS,
    legend,
    parse_state,
    render_state,
    render_turn,
    without_legend,
    without_marks,
)

CHARACTERS = st.one_of(st.characters(), st.sampled_from("[];=%#@ \n\u200b\u202e\uff3d\uff1d\ud800[STATE:TURN_END]"))
TEXTS = st.text(CHARACTERS, max_size=12)
STATES = st.dictionaries(TEXTS, TEXTS, max_size=5)
NONCES = st.text("aZ09", max_size=4)


@pytest.mark.capability("issue 5 §3: parse(render(s)) == s for any state, in both forms, with and without a nonce")
@given(STATES, st.sampled_from(FORMS), NONCES)
def test_what_is_written_is_read(values, form, nonce):
    """Any text by any name survives, line breaks, brackets and lone surrogates included."""
    token = render_state(values, form, nonce)
    assert parse_state(token, names=sorted(values, reverse=True), nonce=nonce) == values


@given(STATES, st.sampled_from(FORMS), NONCES)
@example({"a": "\uff3d\uff3bSTATE"}, "readable", "")
@example({"a": "\ufe48\ufe47@"}, "compact", "k3")
def test_a_value_cannot_leave_its_place(values, form, nonce):
    """In a token there is one pair of brackets, also after NFKC, and nothing that cannot be seen."""
    token = unicodedata.normalize("NFKC", render_state(values, form, nonce))
    assert (token.count("["), token.count("]")) == (1, 1)
    assert not {unicodedata.category(c) for c in token} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(STATES, st.sampled_from(FORMS))
def test_names_are_sorted(values, form):
    """The order in which the host names its values does not matter: the prefix cache stays valid."""
    assert render_state(dict(reversed(values.items())), form) == render_state(values, form)


@pytest.mark.capability("issue 5 §3: three slots with the turn's marks: compact at most 8 tokens, readable at most 26")
@pytest.mark.parametrize(("form", "limit"), [("compact", 8), ("readable", 26)])
def test_tokens(form, limit):
    """Counted as what a turn costs more, with the tokenizers of DeepSeek and Qwen; readable in Chinese as well."""
    for tokenizer in tokenizers().values():
        for values in EXAMPLES[: 4 if form == "compact" else 5]:
            assert marks_cost(tokenizer, None, form) < marks_cost(tokenizer, values, form) <= limit


@pytest.mark.parametrize("nonce", ["a b", "x" * 33, "é", "]"])
def test_bad_nonce(nonce):
    """A nonce that could be read as something else is misuse."""
    with pytest.raises(UsageError, match="nonce"):
        render_state({}, "compact", nonce)


@pytest.mark.parametrize(
    ("token", "names", "why"),
    [
        ("[STATE:a]", (), "no value"),
        ("[STATE:a=b", (), "not a state token"),
        ("[STATE#k:a=b]", (), "not a state token"),
        ("[@ a b]", ("x",), "another number"),
        ("[@#k a]", ("x",), "another number"),
        ("hello", (), "not a state token"),
    ],
)
def test_what_is_no_token(token, names, why):
    """Other text, another nonce, other names."""
    with pytest.raises(UsageError, match=why):
        parse_state(token, names)


def test_the_turn():
    """Marks and state stand behind the text; in words also a mark before it."""
    values = {"b": "2", "a": "1"}
    assert render_turn(values, "readable") == ("[TURN_START]", "[STATE:a=1;b=2][TURN_END]")
    assert render_turn(None, "readable", "k3") == ("[TURN_START#k3]", "[TURN_END#k3]")
    assert render_turn(values, "compact", "k3") == ("", "\n[@#k3 1 2]")
    assert render_turn(None, "compact") == ("", "\n[@ ]")


@given(STATES, st.sampled_from(FORMS), NONCES, st.text())
def test_marks_come_off(values, form, nonce, text):
    """What was put around a text is found again, whatever the text is."""
    head, tail = render_turn(values or None, form, nonce)
    assert without_marks([head + text + tail]) == [text]
    assert without_marks([head, text, tail]) == ["", text, ""]
    assert without_marks([]) == []


def test_the_legend():
    """It names the order of the values, and the nonce; it comes off again."""
    line = legend(["b", "a c"], "compact", "k3")
    assert "[@#k3 a%20c b]" in line
    assert "without #k3" in line
    assert without_legend(f"Be kind.\n{line}") == "Be kind."
    assert legend(["a"], "readable") == ""
    assert without_legend(legend(["a"], "readable", "k3")) == ""


@pytest.mark.parametrize("values", [{"a": 5}, {5: "a"}, None, [("a", "b")], "a"])
def test_values_that_are_none(values):
    """Values are texts by name; what is wrong is named."""
    for form in FORMS:
        with pytest.raises(UsageError, match="values are texts by name"):
            render_state(values, form)


@pytest.mark.parametrize("form", ["loud", None, 1, []])
def test_a_form_that_is_none(form):
    """At every door the form is named, and the two there are."""
    for call in (
        lambda: render_state({"a": "b"}, form),
        lambda: render_turn(None, form),
        lambda: legend(["a"], form),
    ):
        with pytest.raises(UsageError, match="form is one of readable, compact, not"):
            call()


def test_a_nonce_that_is_no_text():
    """A number is no nonce."""
    with pytest.raises(UsageError, match="nonce"):
        render_state({}, "compact", 7)  # type: ignore[arg-type]
