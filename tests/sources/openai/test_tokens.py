from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.sources.openai.tokens import MOST_CANDIDATES, candidates, listed_tokens, token_id


def test_ids_of_servers_are_kept():
    """llama.cpp and TGI give an id, vLLM one in the text, where asked; a plain id is one already."""
    assert token_id({"id": 67, "token": "S", "bytes": [83]}) == 67
    assert token_id({"token": "token_id:128001"}) == 128001
    assert token_id(42) == 42


def test_hash_of_bytes_and_text_agree():
    """A token that is named by its text only has the number of its bytes; it is the same in every process."""
    b2sum = int.from_bytes(bytes.fromhex("954544c2"), "little")  # printf 'é' | b2sum -l 32
    assert token_id({"token": "é", "bytes": [195, 169]}) == token_id({"token": "é", "bytes": None}) == b2sum
    assert token_id({"token": "", "bytes": [240, 159]}) != token_id({"token": ""})


@pytest.mark.parametrize(
    "entry", [None, True, -1, 2**70, {}, {"id": "7"}, {"token": 3}, {"bytes": [300]}, {"id": True}]
)
def test_what_names_no_token(entry):
    """Nothing is made up for what names no token."""
    assert token_id(entry) is None


@given(st.sets(st.text(max_size=6), min_size=2, max_size=60))
def test_tokens_stay_apart(texts):
    """Different tokens have different numbers (32 bits: a list of 60 collides in one of two million)."""
    assert len({token_id({"token": text}) for text in texts}) == len(texts)


def test_candidates_of_a_listed_token():
    """OpenAI's list; -inf is "not computed" and stays, what has no number is left out."""
    top = [{"token": "a", "logprob": -0.1}, {"id": 5, "logprob": -math.inf}, {"token": "b", "logprob": None}, 3]
    top.append({"token": "c", "logprob": -1e300})
    assert candidates({"token": "a", "top_logprobs": top}) == [(token_id({"token": "a"}), -0.1), (5, -math.inf)]


def test_candidates_of_old_completions():
    """Completions of old give a mapping at each position."""
    logprobs = {
        "tokens": [" a", " b"],
        "token_logprobs": [-0.5, -0.1],
        "top_logprobs": [{" a": -0.5, " c": -1.5}, None],
    }
    reasoning, content = listed_tokens({"logprobs": logprobs}, {})
    assert (len(reasoning), len(content)) == (0, 2)
    assert candidates(content[0]) == [(token_id({"token": " a"}), -0.5), (token_id({"token": " c"}), -1.5)]


def test_candidates_of_tgi():
    """TGI lists the candidates beside the tokens: of a reply for every position, of a chunk for one."""
    token, top = {"id": 4, "logprob": -0.5, "text": "x"}, [{"id": 4, "logprob": -0.5}, {"id": 9, "logprob": -2.0}]
    for body in ({"details": {"tokens": [token], "top_tokens": [top]}}, {"token": token, "top_tokens": top}):
        _, content = listed_tokens({}, body)
        assert candidates(content[0]) == [(4, -0.5), (9, -2.0)]


def test_only_so_many_candidates():
    """A list of a whole vocabulary is cut."""
    top = [{"id": k, "logprob": -1.0} for k in range(50_000)]
    assert len(candidates({"top_logprobs": top})) == MOST_CANDIDATES


def test_lists_under_both_names():
    """DeepSeek lists reasoning and answer apart; token ids of vLLM do when there are no log-probabilities."""
    both = {"logprobs": {"reasoning_content": [{"token": "Hm"}], "content": [{"token": "Yes"}]}, "token_ids": [1, 2]}
    assert listed_tokens(both, {}) == ([{"token": "Hm"}], [{"token": "Yes"}])
    assert listed_tokens({"logprobs": None, "token_ids": [1, 2]}, {}) == ((), [1, 2])
