"""Words of conditions, guards and literals."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from stabilitykit.rules.conditions.suggest import did_you_mean

__all__ = ["ID", "NAME", "RESERVED", "Near", "SyntaxProblem", "Token", "tokens"]

NAME = re.compile(r"[a-z][a-z0-9_]*")
ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
RESERVED = frozenset(
    "or and not in params rule abs prev delta min max mean count true false turn turns sample samples "
    "us ms s tokens bytes nats bits for any none at least tagged info warning critical".split()
)
"""The words that the grammar quotes (lower case ones): no signal, detector or param may have such a name."""

_UNIT = r"(?:tokens/s|tokens|bytes|KiB|MiB|GiB|nats|bits|turns|turn|samples|sample|us|ms|s|C|/s)(?![A-Za-z0-9_])|%"
_BLANK = r"[ \t\r\n]*"
_TOKEN = re.compile(
    rf"{_BLANK}(?:(?P<num>(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?:{_BLANK}(?P<unit>{_UNIT}))?"
    rf"|rule{_BLANK}:{_BLANK}(?P<rule>[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*)"
    rf"|tagged[ \t\r\n]+(?P<tag>[A-Za-z0-9][A-Za-z0-9_-]*)"
    rf"|(?P<dotted>[a-z][a-z0-9_]*{_BLANK}\.{_BLANK}[a-z][a-z0-9_]*)"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<op>>=|<=|==|!=|[-+*/(){},><])|(?P<end>\Z))"
)
MAX_TOKENS = 2_048
"""Many times what 256 nodes need: a longer text is not read to its end."""
_LONGEST = 100  # characters of a number: more digits than any float64 has
_INSTEAD = {
    "#": "there are no comments inside a condition",
    "&": "write `and`",
    "|": "write `or`",
    "!": "write `not`",
    "=": "write `==`",
    "[": "write `x in {a, b}`",
    ".": "write 0.5, not .5",
    '"': "words of an enum stand without quotes",
    "'": "words of an enum stand without quotes",
}

_TURNED = {"=>": "did you mean `>=`?", "=<": "did you mean `<=`?"}

Near = tuple[str, Iterable[str]]
"""A misspelt word, and the words there are."""


class SyntaxProblem(Exception):
    """One mistake in a condition, guard or literal, with its place in the text.

    Parameters
    ----------
    code
        ``SKnnn``.
    offset, width
        Zero-based place in the text, in characters.
    message, otherwise
        As in ``Problem``; `otherwise` is the hint when no name is near.
    near
        A misspelt word and the words there are: the nearest is the hint. It is looked for when
        the hint is read, because most of a thousand mistakes are never shown.
    """

    def __init__(
        self, code: str, offset: int, width: int, message: str, otherwise: str = "", near: Near | None = None
    ) -> None:
        super().__init__(code, offset, width, message, otherwise, near)
        self.code, self.offset, self.width, self.message = code, offset, max(1, width), message
        self.otherwise, self.near = otherwise, near

    @property
    def hint(self) -> str:
        """A fix or the nearest name."""
        return (self.near and did_you_mean(*self.near)) or self.otherwise

    def __str__(self) -> str:
        return f"{self.offset + 1}: {self.code} {self.message}" + (f" ({self.hint})" if self.hint else "")


class Token(NamedTuple):
    """One word: ``kind`` is ``num``, ``rule``, ``tag``, ``dotted``, ``word``, ``op`` or ``end``."""

    kind: str
    text: str
    start: int
    stop: int
    unit: str = ""


def tokens(text: str) -> list[Token]:
    """Split a text into tokens; the last has kind ``end``.

    Raises
    ------
    SyntaxProblem
        SK401 at a character or number that the language does not have, SK601 in an endless text.
    """
    found: list[Token] = []
    at = 0
    find = _TOKEN.match
    for _ in range(MAX_TOKENS):
        match = find(text, at)
        if match is None:
            raise _stray(text, at)
        kind = match.lastgroup or ""
        at = match.end()
        if kind == "word" or kind == "op":
            word = match[kind]
            found.append(Token(kind, word, at - len(word), at))
        elif kind == "num" or kind == "unit":
            start = match.start("num")
            torn = match["unit"] is None and text[at : at + 1] in ("_", ".", *"0123456789")
            if torn or at - start > _LONGEST:
                raise _bad_number(text, start)
            found.append(Token("num", match["num"], start, at, match["unit"] or ""))
        elif kind == "dotted":
            found.append(Token(kind, "".join(match[kind].split()), match.start(kind), at))
        elif kind == "rule":
            found.append(Token(kind, match[kind], _rule_start(text, match), at))
        else:
            found.append(Token(kind, match[kind], match.start(kind), at))
            if kind == "end":
                return found
    raise SyntaxProblem("SK601", at, 1, f"more than {MAX_TOKENS:,} words and signs", "split it, with `rule:id`")


def _rule_start(text: str, match: re.Match[str]) -> int:
    return text.index("rule", match.start())


def _stray(text: str, at: int) -> SyntaxProblem:
    while text[at] in " \t\r\n":
        at += 1
    char = text[at]
    shown = f"`{char}`" if char.isprintable() else f"U+{ord(char):04X}"
    pair = text[at : at + 2]
    if pair in _TURNED:
        return SyntaxProblem("SK401", at, 2, f"`{pair}` has no meaning here", _TURNED[pair])
    return SyntaxProblem("SK401", at, 1, f"{shown} has no meaning here", _INSTEAD.get(char, ""))


def _bad_number(text: str, start: int) -> SyntaxProblem:
    stop = start
    while stop < len(text) and (text[stop].isalnum() or text[stop] in "_."):
        stop += 1
    return SyntaxProblem(
        "SK401",
        start,
        stop - start,
        "a badly written number",
        "no leading 0, no `_`, digits on both sides of the point",
    )
