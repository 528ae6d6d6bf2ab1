"""OpenAI-style messages as plain text, and the units that a cut keeps or drops whole.

A unit is one message, or an assistant's tool calls with all their results: half of such a pair is refused by servers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from stabilitykit.mitigations.outcome import Message

__all__ = [
    "SYSTEM",
    "Unit",
    "images_of",
    "is_plain",
    "last_user",
    "read_units",
    "role_of",
    "text_of",
    "without_old_reasoning",
]

REASONING = ("reasoning_content", "reasoning")
SYSTEM = ("system", "developer")
_RESULTS = ("tool", "function")


class Unit(NamedTuple):
    """Messages that stay together.

    Parameters
    ----------
    members
        Their places in the list, ascending.
    is_tool
        Whether it holds tool calls or results.
    is_broken
        A result without its call, or calls (not the last thing said) that lack a result: no server takes it.
    """

    members: tuple[int, ...]
    is_tool: bool = False
    is_broken: bool = False


def role_of(message: Message) -> str:
    """Give the role, "" where there is none."""
    return str(message.get("role") or "")


def _spoken(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    parts = [
        p if isinstance(p, str) else p.get("text") or p.get("refusal") for p in content if isinstance(p, str | Mapping)
    ]
    return "\n".join(p for p in parts if isinstance(p, str))


def _called(call: Any) -> str:
    if not isinstance(call, Mapping):
        return ""
    function = call.get("function", call)
    if not isinstance(function, Mapping):
        return ""
    arguments = function.get("arguments") or ""
    return f"{function.get('name', '')} {arguments if isinstance(arguments, str) else json.dumps(arguments)}"


def is_plain(message: Message) -> bool:
    """Tell whether a message has nothing but a role, which is not that of a result, and a content."""
    return len(message) == 2 and "content" in message and message.get("role") not in _RESULTS


def _calls(message: Message) -> list[Any]:
    if len(message) == 2 and "content" in message:
        return []
    calls = message.get("tool_calls")
    found = list(calls) if isinstance(calls, Sequence) and not isinstance(calls, str) else []
    return found + ([message["function_call"]] if isinstance(message.get("function_call"), Mapping) else [])


def text_of(message: Message) -> str:
    r"""Give all that a message says: its text, its reasoning, the names and arguments of its calls.

    Examples
    --------
    >>> call = {"id": "1", "function": {"name": "look", "arguments": '{"at": 3}'}}
    >>> text_of({"role": "assistant", "content": [{"type": "text", "text": "Wait."}], "tool_calls": [call]})
    'Wait.\nlook {"at": 3}'
    """
    content = message.get("content")
    if isinstance(content, str) and len(message) == 2:
        return content
    parts = [_spoken(content), *(message.get(key) for key in REASONING), *map(_called, _calls(message))]
    return "\n".join(p for p in parts if isinstance(p, str) and p)


def images_of(message: Message) -> int:
    """Count parts that are no text: images, sound, files."""
    content = message.get("content")
    if isinstance(content, str) or not isinstance(content, Sequence):
        return 0
    return sum(1 for p in content if isinstance(p, Mapping) and p.get("type") not in (None, "text", "refusal"))


def last_user(messages: Sequence[Message], is_anchor: Sequence[bool] | None = None) -> int:
    """Give the place of the last user message (an anchor of ours is none), -1 where there is none."""
    for k in range(len(messages) - 1, -1, -1):
        if role_of(messages[k]) == "user" and not (is_anchor and is_anchor[k]):
            return k
    return -1


def read_units(messages: Sequence[Message]) -> list[Unit]:
    """Divide a list into units.

    Results follow their calls directly, as servers want it; a result anywhere else is broken.
    """
    found: list[Unit] = []
    k = 0
    while k < len(messages):
        start, message = k, messages[k]
        k += 1
        if is_plain(message):
            found.append(Unit((start,)))
            continue
        calls = _calls(message)
        if message.get("role") in _RESULTS:
            found.append(Unit((start,), True, True))
        elif not calls:
            found.append(Unit((start,)))
        else:
            wanted = [c.get("id") if isinstance(c, Mapping) else None for c in calls]
            while k < len(messages) and messages[k].get("role") in _RESULTS:
                result = messages[k].get("tool_call_id")
                if result not in wanted:
                    break
                wanted.remove(result)
                k += 1
            found.append(Unit(tuple(range(start, k)), True, bool(wanted) and k < len(messages)))
    return found


def without_old_reasoning(messages: Sequence[Message], before: int) -> list[Message]:
    """Leave out the reasoning of the turns before a place: models do not want it back, so it goes before any words."""
    return [
        {key: value for key, value in m.items() if key not in REASONING}
        if k < before and ("reasoning_content" in m or "reasoning" in m)
        else m
        for k, m in enumerate(messages)
    ]
