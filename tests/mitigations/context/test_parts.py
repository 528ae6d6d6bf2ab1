from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.mitigations.context import ContextIndex, estimate_tokens
from stabilitykit.mitigations.context.messages import Unit, read_units, without_old_reasoning
from stabilitykit.mitigations.context.pieces import pieces_of
from stabilitykit.mitigations.context.relevance import bm25, uniqueness
from stabilitykit.mitigations.context.worth import log_worth


def index_of(*texts):
    """Read some messages."""
    index = ContextIndex()
    index.sync([{"role": "user", "content": text} for text in texts])
    return index


@given(st.text(alphabet="ab .!?。！\n`~\"'」x", max_size=80))
def test_pieces_are_the_text(text):
    """Joined they are the text, and no fence is open in one of them but the last."""
    pieces = pieces_of(text)
    assert "".join(pieces) == text
    assert all(pieces)


def test_fences_and_chinese():
    """Code stays whole whatever it says; Chinese sentences end without a space."""
    assert pieces_of("Look. ~~~~\nno fence") == ["Look. ", "~~~~\n", "no fence"]
    assert pieces_of("````md\n```\na. b.\n```\n````\nDone. Yes") == ["````md\n```\na. b.\n```\n````\n", "Done. ", "Yes"]
    assert pieces_of("```\nnever closed. Really.") == ["```\nnever closed. Really."]
    assert pieces_of("他说：“走吧！”然后走了。") == ["他说：“走吧！”", "然后走了。"]


def bm25_by_hand(texts, query):
    """Score single words without an index (k1 1.5, b .5)."""
    docs = [t.split() for t in texts]
    mean = sum(map(len, docs)) / len(docs)
    found = []
    for doc in docs:
        total = 0.0
        for word in query.split():
            held = sum(word in d for d in docs)
            idf = np.log(1 + (len(docs) - held + 0.5) / (held + 0.5))
            n = doc.count(word)
            total += idf * n * 2.5 / (n + 1.5 * (0.5 + 0.5 * len(doc) / mean))
        found.append(total)
    return found


@given(
    st.lists(st.lists(st.sampled_from("kiwi plum fig corn".split()), min_size=1).map(" ".join), min_size=1, max_size=6)
)
def test_bm25_against_its_formula(texts):
    """The index gives what the formula gives, in any order of words, with words twice in the query."""
    query = "fig kiwi fig"
    np.testing.assert_allclose(bm25(index_of(*texts), query), bm25_by_hand(texts, query), atol=1e-9)


def test_chinese_pairs_count():
    """Two characters side by side are worth more than the same two apart."""
    near, apart, other = bm25(index_of("我住在北京", "北方有东京", "今天下雨"), "北京在哪里")
    assert near > apart > other == 0


def test_inflection_is_no_obstacle():
    """A stem matches its forms."""
    assert bm25(index_of("She painted landscapes.", "It rains."), "painting a landscape")[0] > 0


@pytest.mark.capability("issue 5 §1: the token counter's documented estimate, for Latin and CJK")
def test_the_estimate():
    """Long words, numbers and other alphabets are more than one token; each CJK character and mark is one."""
    assert [estimate_tokens(t) for t in ("", "cat", "hippopotamus", "1234567", "你好吗？", "Здравствуй", "a_b")] == [
        0,
        1,
        2,
        3,
        4,
        4,
        3,
    ]
    index = index_of("The cat, 12345 hippopotamus 你好", "")
    assert index.tokens.tolist() == [estimate_tokens(index.texts[0]) + 4, 4]


def test_worth_prefers_facts():
    """What tells of people and places is worth more than what keeps the talk going."""
    worth = log_worth(
        index_of("Wow, really? That is so nice of you!", "I moved to Bristol with my sister Joan in 2019.")
    )
    assert worth[1] > worth[0]


def test_the_source_against_its_formula():
    """The diagonal of the softmax, times the bias of position (formulas A4.1)."""
    rows = np.array([[1.0, 0.0], [0.6, 0.8], [1.0, 0.0]])
    cosines = np.exp(rows @ rows.T)
    bias = 1 / (1 + np.array([2.0, 1.0, 0.0]))
    expected = np.diag(cosines) / cosines.sum(axis=1) * (1 + np.log(1 + bias))
    np.testing.assert_allclose(uniqueness(rows, 2), expected)


def test_calls_need_no_content():
    """A message of nothing but a role and calls, or reasoning, is read as one."""
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "c", "content": "3"}
    assert read_units([{"role": "assistant", "tool_calls": [call]}, result]) == [Unit((0, 1), True)]
    assert without_old_reasoning([{"role": "assistant", "reasoning": "Hm."}], 1) == [{"role": "assistant"}]
