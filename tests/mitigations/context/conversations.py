"""Random conversations of every shape that OpenAI-style lists have, and what any cut of one must hold."""

from __future__ import annotations

import json
import random
from typing import Any

from stabilitykit.mitigations.context import ContextIndex, Policy, trim
from stabilitykit.mitigations.context.messages import SYSTEM, last_user, read_units
from stabilitykit.mitigations.context.pieces import pieces_of
from stabilitykit.mitigations.context.summary import is_anchor

SENTENCES = (
    "My dog Rex likes the lake. ",
    "Order HAT136 ships on 2024-05-20! ",
    "Is that so? ",
    "我住在北京。",
    "明天见！",
    "好\n",
    "It costs 3.50 euros (about).\n",
    "```py\nx = 1. \n# why?\n```\n",
    "~~~\ntext. More text。\n",
    "Привет, как дела? ",
    "…",
    "\0",
    "no full stop",
    "a" * 70 + " ",
)


def words(rng: random.Random) -> str:
    """Give some sentences."""
    return "".join(rng.choice(SENTENCES) for _ in range(rng.choice((0, 1, 1, 2, 4, 30))))


def content(rng: random.Random) -> Any:
    """Give a content: a text, parts of several kinds, or nothing."""
    kind = rng.randrange(12)
    if kind == 0:
        return None
    if kind == 1:
        return [{"type": "text", "text": words(rng)}, {"type": "image_url", "image_url": {"url": "data:"}}]
    if kind == 2:
        return [{"type": "text", "text": words(rng)}, "loose", {"type": "refusal", "refusal": "no."}, 7]
    return words(rng)


def exchange(rng: random.Random, name: int) -> list[dict[str, Any]]:
    """Tool calls with their results; now and then one is missing, strange or too late."""
    ids = [f"c{name}-{k}" for k in range(rng.randrange(1, 4))]
    calls = [{"id": i, "type": "function", "function": {"name": "look", "arguments": words(rng)}} for i in ids]
    found: list[dict[str, Any]] = [{"role": "assistant", "content": None, "tool_calls": calls}]
    rng.shuffle(ids)
    if rng.random() < 0.2:
        ids.pop()
    if rng.random() < 0.1:
        ids.append("unknown")
    return found + [{"role": "tool", "tool_call_id": i, "content": result(rng)} for i in ids]


def result(rng: random.Random) -> str:
    """Give what a tool answers: JSON of any shape and spacing, or a text."""
    if rng.random() < 0.4:
        return words(rng)
    style = rng.choice(({}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}))
    return json.dumps(value(rng, 0), **style)


def value(rng: random.Random, depth: int) -> Any:
    """Give a value of JSON."""
    kind = rng.randrange(2, 8) if depth < 2 else rng.randrange(5)
    if kind < 5:
        return (None, rng.randrange(10**6), f"HAT{rng.randrange(1000)}", words(rng), 3.50)[kind]
    size = rng.choice((0, 1, 3, 9))
    if kind == 5:
        return [value(rng, depth + 1) for _ in range(size)]
    return {rng.choice(("id", "date", "名")) + str(k): value(rng, depth + 1) for k in range(size)}


def is_part(left: Any, whole: Any) -> bool:
    """Tell whether a value of JSON is another with some members left out, and marks where they stood."""
    if isinstance(left, dict) and isinstance(whole, dict):
        return all(k == "…" or (k in whole and is_part(v, whole[k])) for k, v in left.items())
    if isinstance(left, list) and isinstance(whole, list):
        rest = iter(whole)
        return all(any(is_part(one, other) for other in rest) for one in left if one != "…")
    return json.dumps(left) == json.dumps(whole)  # NaN is itself, and 1 is not 1.0


def conversation(rng: random.Random) -> list[dict[str, Any]]:
    """Give a conversation."""
    found: list[dict[str, Any]] = []
    if rng.random() < 0.8:
        found.append({"role": rng.choice(SYSTEM), "content": words(rng)})
    for k in range(rng.choice((0, 1, 3, 8, 15))):
        kind = rng.random()
        if kind < 0.45:
            found.append({"role": "user", "content": content(rng)})
        elif kind < 0.8:
            found.append({"role": "assistant", "content": content(rng)})
            if rng.random() < 0.3:
                found[-1]["reasoning_content"] = words(rng)
        elif kind < 0.95:
            found += exchange(rng, k)
        else:
            found.append(
                rng.choice(
                    (
                        {"role": "tool", "tool_call_id": "x", "content": "lost"},
                        {},
                        {"role": "system", "content": "Now."},
                    )
                )
            )
    return found


def policy(rng: random.Random) -> Policy:
    """Give a policy."""
    return Policy(
        window_tokens=rng.choice((0, 16, 512)),
        window_share=rng.choice((0.0, 0.125, 0.5, 1.0)),
        anchors=rng.randrange(4),
        scorer=rng.choice(("auto", "auto", "lexical", "identifiers", "source")),
        is_blind=rng.random() < 0.3,
        is_whole=rng.random() < 0.2,
        low_water=rng.choice((0.0, 0.5, 0.75, 1.0)),
        summary_tokens=rng.choice((0, 0, 24, 256)),
    )


def counter(rng: random.Random) -> Any:
    """The estimate, or a host's counter that does not add up over parts of a text."""
    return rng.choice((None, None, lambda text: (len(text) + 3) // 4 + len(text) % 3))


def check(seed: int) -> None:
    """Trim one random conversation and look at every guarantee."""
    rng = random.Random(seed)
    given, how, count, budget = conversation(rng), policy(rng), counter(rng), rng.choice((0, 1, 40, 120, 300, 900))
    copy = [dict(m) for m in given]
    done = trim(given, budget, policy=how, index=ContextIndex(count))
    assert [dict(m) for m in given] == copy, seed
    sizes = ContextIndex(count)
    assert done.tokens_after == sum(map(sizes.count, done.messages)), seed
    asked = last_user(given, [is_anchor(m) for m in given])
    must = [k for k, m in enumerate(given) if m.get("role") in SYSTEM or k == asked]
    assert set(must) <= set(done.kept), seed
    assert all(given[k] in done.messages for k in must), seed
    if done.is_fit:
        assert done.tokens_after <= budget, seed
    else:
        assert list(done.kept) == must, seed
        assert sum(sizes.count(given[k]) for k in must) > budget, seed
    _check_whole(given, done, how.is_whole, seed)
    again = trim(given, budget, policy=how, index=ContextIndex(count))
    assert again == done, seed
    settled = trim(done.messages, budget, policy=how, index=ContextIndex(count))
    assert settled.messages == done.messages or not done.is_fit, seed
    assert sum(map(is_anchor, done.messages)) <= 1, seed


def _check_whole(given: list[dict[str, Any]], done: Any, is_whole: bool, seed: int) -> None:
    kept = set(done.kept)
    for unit in read_units(given):
        inside = kept.intersection(unit.members)
        assert len(inside) in (0, len(unit.members)), seed
        assert not (inside and unit.is_broken) or len(kept) == len(given), seed
    own = [m for m in done.messages if not is_anchor(m)]
    assert len(own) == len(done.kept), seed
    for place, message in zip(done.kept, own, strict=True):
        before, after = given[place].get("content"), message.get("content")
        if after == before:
            continue
        assert all(message[key] == given[place][key] for key in message if key != "content"), seed
        assert not (is_whole and message["role"] == "tool"), seed
        if message["role"] == "tool" and before[0] in "{[" and after != "…":
            assert is_part(json.loads(after), json.loads(before)), seed
        else:
            _check_pieces(before, after, seed)


def _check_pieces(before: str, text: str, seed: int) -> None:
    """Some of the pieces in their order are all that is left (marks and spaces aside)."""
    left, reached = _bare(text), {0}
    for piece in map(_bare, pieces_of(before)):
        reached |= {at + len(piece) for at in reached if left.startswith(piece, at)}
    assert len(left) in reached, seed


def _bare(text: str) -> str:
    return "".join(text.replace("…", "").split())
