"""Tokens of an answer as servers list them: how many, their ids, and the candidates of one position.

APIs of OpenAI's kind name a token by its text or bytes, not by its id. Where an id is given (llama.cpp, TGI, vLLM's
``token_ids`` and ``token_id:123``) it is used; else the first 32 bits of BLAKE2b over the bytes stand for it: the same
token has the same number in every process, and 20 candidates collide once in 20 million turns. ``kl_shift`` and
``degeneration`` only compare ids, within one session.

The candidates are those of the *first* token of the answer: the last token of an answer is nearly always the end mark,
with a probability close to 1, and says nothing. Only an answer without content is judged by its first reasoning token.

Examples
--------
>>> token_id({"token": "Hi", "bytes": [72, 105]}) == token_id({"token": "Hi"})
True
>>> token_id({"token": "Hi", "id": 17}), token_id({"token": "token_id:17"})
(17, 17)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from stabilitykit.sources.openai.fields import fields, items, number

__all__ = ["MOST_CANDIDATES", "candidates", "listed_tokens", "token_id"]

MOST_CANDIDATES = 64
"""Longest list that is kept; OpenAI gives 20, ``kl_shift`` reads at most 64."""
_LARGEST = 2**63 - 1
_GREATEST = 1e6
"""No log-probability; what is written for "not computed" is -9999."""
_LISTS = ("completion_probabilities", "tokens", "details", "token")


def token_id(entry: object) -> int | None:
    """Give the id of a listed token, or the hash that stands for it; ``None`` where nothing names it."""
    named = fields(entry)
    given = named.get("id", entry)
    if isinstance(given, int) and not isinstance(given, bool):
        return given if 0 <= given <= _LARGEST else None
    raw, text = named.get("bytes"), named.get("token")
    try:
        if isinstance(raw, list) and raw:
            return _hashed(bytes(raw))
        if not isinstance(text, str):
            return None
        if text.startswith("token_id:") and text[9:].isdecimal():
            return min(int(text[9:28]), _LARGEST)
        return _hashed(text.encode("utf-8", "surrogatepass"))
    except (TypeError, ValueError):  # bytes that are none
        return None


def _hashed(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=4).digest(), "little")


def candidates(token: object) -> list[tuple[int, float]]:
    """Give id and log-probability of each candidate that a listed token was chosen from."""
    given = fields(token).get("top_logprobs")
    if isinstance(given, dict):  # completions of old: {token: logprob}
        given = [{"token": text, "logprob": value} for text, value in list(given.items())[:MOST_CANDIDATES]]
    found = []
    for entry in items(given)[:MOST_CANDIDATES]:
        which, value = token_id(entry), fields(entry).get("logprob")
        logprob = -math.inf if value == -math.inf else number(value)
        if which is not None and logprob is not None and (logprob == -math.inf or abs(logprob) <= _GREATEST):
            found.append((which, logprob))
    return found


def listed_tokens(choice: Mapping[str, Any], body: Mapping[str, Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Give the reasoning tokens and the tokens of the answer that a reply or chunk lists, empty where it lists none.

    An element is a token with its log-probability, with ``top_logprobs`` where these were asked for, or a plain id.
    """
    if not choice.get("logprobs") and not choice.get("token_ids") and not any(map(body.get, _LISTS)):
        return (), ()
    logprobs, details = fields(choice.get("logprobs")), fields(body.get("details"))
    content = (
        items(logprobs.get("content"))
        or _old_style(logprobs)
        or items(choice.get("token_ids"))
        or items(body.get("completion_probabilities"))
        or items(body.get("tokens"))
        or _tgi(items(details.get("tokens")), details)
        or _tgi([body["token"]] if isinstance(body.get("token"), dict) else (), body)
    )
    return items(logprobs.get("reasoning_content")), content


def _old_style(logprobs: Mapping[str, Any]) -> Sequence[Any]:
    values = items(logprobs.get("token_logprobs"))
    texts, tops = items(logprobs.get("tokens")), items(logprobs.get("top_logprobs"))
    return [
        {
            "logprob": value,
            "token": next(iter(texts[k : k + 1]), None),
            "top_logprobs": next(iter(tops[k : k + 1]), None),
        }
        for k, value in enumerate(values)
    ]


def _tgi(tokens: Sequence[Any], beside: Mapping[str, Any]) -> Sequence[Any]:
    tops = items(beside.get("top_tokens"))
    if not tokens or not tops:
        return tokens
    first = tops if isinstance(tops[0], dict) else tops[0]  # a chunk lists one position, a reply all
    return [{**fields(tokens[0]), "top_logprobs": first}, *tokens[1:]]
