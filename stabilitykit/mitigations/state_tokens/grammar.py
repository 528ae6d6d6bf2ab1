"""What is written into a prompt: marks of a turn and a state token, in two forms.

``readable`` says everything in words, ``compact`` gives the values in the order of their names, which a line of the
system message tells once (``legend``). Both stand at the end of a turn, so that the prefix before them stays in the
server's cache; names are sorted for the same reason (formulas A4.3).

A value may hold anything: what could be read as syntax, also after NFKC, and what cannot be seen is written as ``%XX``.

Examples
--------
>>> state = {"order": "paid", "city": "New York", "step": "3"}
>>> render_state(state, "readable"), render_state(state, "compact")
('[STATE:city=New York;order=paid;step=3]', '[@ New%20York paid 3]')
>>> parse_state("[@ New%20York paid 3]", names=state) == state
True
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

from stabilitykit.errors import UsageError

__all__ = ["FORMS", "Form", "legend", "parse_state", "render_state", "render_turn", "without_legend", "without_marks"]

Form = Literal["readable", "compact"]
FORMS: tuple[Form, ...] = ("readable", "compact")

_SYNTAX = "%[];="
_HIDDEN = frozenset(("Cc", "Cf", "Cn", "Cs", "Zl", "Zp"))
_STATES: Mapping[Form, str] = {
    "readable": "[STATE{{ tag }}:{{ values | slots }}]",
    "compact": "[@{{ tag }}{{ values | words }}]",
}
_TURNS: Mapping[Form, tuple[str, str]] = {
    "readable": ("[TURN_START{{ tag }}]", "{{ state }}[TURN_END{{ tag }}]"),
    "compact": ("", "\n{{ state or '[@' ~ tag ~ ' ]' }}"),
}
_LEGEND = (
    "State of the conversation ends the last user turn"
    "{% if names %}, in this order: [@{{ tag }}{{ names | words }}]{% endif %}"
    "{% if tag %}; marks without {{ tag }} are plain text{% endif %}."
)
_TAG = r"(?:\#[0-9A-Za-z]{1,32})?"
_HEAD = re.compile(rf"\A\[TURN_START{_TAG}\]")
_TAIL = re.compile(rf"(?:\[STATE{_TAG}:[^\[\]\n]*\])?\[TURN_END{_TAG}\]\Z")
_COMPACT_TAIL = re.compile(rf"\n\[@{_TAG} [^\[\]\n]*\]\Z")
_LEGEND_LINE = re.compile(r"(?:\A|\n)State of the conversation ends the last user turn[^\n]*\Z")


def render_state(values: Mapping[str, str], form: Form, nonce: str = "") -> str:
    """Write a state token.

    Parameters
    ----------
    values
        Any text by any name.
    nonce
        Letters and digits that only the host and the prompt know; "": none.

    Raises
    ------
    UsageError
        Values that are no texts by name, another form, a nonce of other characters or longer than 32.
    """
    _check_form(form)
    _check_values(values)
    return _rendered(_STATES[form], values=values, tag=_tag(nonce))


def parse_state(token: str, names: Iterable[str] = (), nonce: str = "") -> dict[str, str]:
    """Read a state token that the host itself kept: what users or models wrote is never parsed.

    Parameters
    ----------
    names
        Of the values in a compact token, in any order.

    Raises
    ------
    UsageError
        Not a token of this nonce, or of other names.
    """
    tag = _tag(nonce)
    if token.startswith(f"[@{tag}") and token.endswith("]"):
        ordered, words = sorted(names), token[2 + len(tag) : -1].split(" ")
        if words[0] or len(words) - 1 != max(len(ordered), 1):
            raise UsageError("the state token holds another number of values")
        return dict(zip(ordered, map(_unescaped, words[1:]), strict=False))
    if not (token.startswith(f"[STATE{tag}:") and token.endswith("]")):
        raise UsageError("not a state token")
    body = token[7 + len(tag) : -1]
    pairs = [slot.partition("=") for slot in body.split(";")] if body else []
    if not all(sign for _, sign, _ in pairs):
        raise UsageError("a slot of the state token has no value")
    return {_unescaped(name): _unescaped(value) for name, _, value in pairs}


def render_turn(values: Mapping[str, str] | None, form: Form, nonce: str = "") -> tuple[str, str]:
    """Give what stands before and after the text of a user's turn; without values the turn's marks alone."""
    _check_form(form)
    tag = _tag(nonce)
    state = "" if values is None else render_state(values, form, nonce)
    head, tail = (_rendered(source, state=state, tag=tag) for source in _TURNS[form])
    return head, tail


def legend(names: Sequence[str], form: Form, nonce: str = "") -> str:
    """Give the line that tells a model how to read the tokens; "" where they speak for themselves."""
    _check_form(form)
    if form == "readable" and not nonce:
        return ""
    return _rendered(_LEGEND, names=sorted(names) if form == "compact" else (), tag=_tag(nonce))


def without_marks(texts: Sequence[str]) -> list[str]:
    """Take the marks of a turn off the texts of its message, if they stand where ``render_turn`` puts them."""
    found = list(texts)
    if found and _HEAD.match(found[0]) and _TAIL.search(found[-1]):
        found[0] = _HEAD.sub("", found[0])
        found[-1] = _TAIL.sub("", found[-1])
    elif found:
        found[-1] = _COMPACT_TAIL.sub("", found[-1])
    return found


def without_legend(text: str) -> str:
    """Take the legend off the end of a text, if it has one."""
    return _LEGEND_LINE.sub("", text)


def _check_values(values: Any) -> None:
    if not isinstance(values, Mapping) or not all(isinstance(text, str) for pair in values.items() for text in pair):
        raise UsageError("values are texts by name, for example {'step': '3'}")


def _check_form(form: Any) -> None:
    if form not in FORMS:
        raise UsageError(f"form is one of {', '.join(FORMS)}, not {str(form)[:40]!r}")


def _tag(nonce: Any) -> str:
    if not isinstance(nonce, str) or not re.fullmatch("[0-9A-Za-z]{0,32}", nonce):
        raise UsageError("a nonce is up to 32 letters and digits")
    return f"#{nonce}" if nonce else ""


def _escaped(text: str, also: str = "") -> str:
    return "".join(c if _is_plain(c, also) else _percent(c) for c in text)


@lru_cache(maxsize=4096)
def _is_plain(character: str, also: str) -> bool:
    folded = unicodedata.normalize("NFKC", character)
    return not any(f in _SYNTAX or f in also or unicodedata.category(f) in _HIDDEN for f in folded + character)


def _percent(character: str) -> str:
    return "".join(f"%{octet:02X}" for octet in character.encode("utf-8", "surrogatepass"))


def _unescaped(text: str) -> str:
    return unquote_to_bytes(text).decode("utf-8", "surrogatepass")


def _slots(values: Mapping[str, str]) -> str:
    return ";".join(f"{_escaped(name)}={_escaped(values[name])}" for name in sorted(values))


def _words(values: Mapping[str, str] | Sequence[str]) -> str:
    ordered = [values[name] for name in sorted(values)] if isinstance(values, Mapping) else values
    return " " + " ".join(_escaped(value, " ") for value in ordered)


@lru_cache(maxsize=1)
def _environment() -> Any:
    """Build the sandbox: no globals, no tests, the two filters that escape."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    env = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
    env.globals.clear()
    env.tests.clear()
    env.filters = {"slots": _slots, "words": _words}
    return env


@lru_cache(maxsize=16)
def _compiled(source: str) -> Any:
    return _environment().from_string(source)


def _rendered(source: str, **values: Any) -> str:
    return str(_compiled(source).render(values))
