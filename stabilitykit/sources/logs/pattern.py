"""Patterns: ``{name:type unit}`` placeholders, the rest a small part of google-re2's syntax.

Groups are ``(?:...)`` only. What stands outside groups, classes and repetitions is literal; the longest such text
becomes the prefilter: a line without it cannot match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from stabilitykit.sources.logs.template import KINDS, Field

__all__ = ["MAX_PATTERN", "MIN_LITERAL", "PatternProblem", "Shape", "shape_of"]

MAX_PATTERN = 1_000
MIN_LITERAL = 4
"""A shorter text would let nearly every line through the prefilter."""
_FIELD = re.compile(r"\{([a-z][a-z0-9_]*):([a-z]+)(?: ([^{}]+))?\}")
_REPEAT = re.compile(r"[*+?]\??|\{[0-9]+(?:,[0-9]*)?\}\??")
_PUNCTUATION = re.compile(r"[^A-Za-z0-9]")


@attrs.frozen
class PatternProblem(Exception):
    """What is wrong with a pattern, and where in it."""

    message: str
    offset: int = 0
    width: int = 1
    hint: str = ""


@attrs.frozen
class Shape:
    """A pattern taken apart."""

    regex: str
    literal: str
    specificity: int
    fields: tuple[Field, ...]


def shape_of(pattern: str, literal: str = "") -> Shape:
    r"""Take a pattern apart.

    Parameters
    ----------
    literal
        A rarer text to filter by than the longest one; it must stand in the pattern.

    Raises
    ------
    PatternProblem
        The first mistake, with its place in the pattern.

    Examples
    --------
    >>> shape_of(r"timeout after {elapsed_ms:number ms}ms on {endpoint:path}").literal
    'timeout after '
    """
    if not pattern.isascii():
        at = next(k for k, c in enumerate(pattern) if not c.isascii())
        raise PatternProblem("a pattern is ASCII: matching is on bytes", at, 1, r"`.{1,8}` for what is not")
    if len(pattern) > MAX_PATTERN:
        raise PatternProblem(f"a pattern has at most {MAX_PATTERN:,} characters")
    runs = list(_runs(pattern))
    if literal and not any(literal in run for run in runs):
        raise PatternProblem("`literal` stands nowhere in the pattern outside groups and repetitions", 0, len(pattern))
    literal = literal or max(runs, key=len, default="")
    if len(literal) < MIN_LITERAL:
        message = f"a pattern needs {MIN_LITERAL} literal characters in a row, outside groups and repetitions"
        raise PatternProblem(message, 0, len(pattern))
    return Shape(_FIELD.sub(_group, pattern), literal, sum(map(len, runs)), tuple(_fields(pattern)))


def _group(match: re.Match[str]) -> str:
    return f"(?P<{match[1]}>{KINDS[match[2]]})"


def _fields(pattern: str) -> Iterator[Field]:
    seen: set[str] = set()
    for match in _FIELD.finditer(pattern):
        at, width = match.start(), len(match[0])
        if match[2] not in KINDS:
            raise PatternProblem(f"unknown type `{match[2]}`", at, width, "one of " + ", ".join(KINDS))
        if match[1] in seen:
            raise PatternProblem(f"field `{match[1]}` stands here twice", at, width)
        field = Field(match[1], match[2], match[3] or "")
        if field.problem:
            raise PatternProblem(field.problem, at, width)
        seen.add(match[1])
        yield field


def _runs(pattern: str) -> Iterator[str]:
    """Give the literal texts at the top level, each one that every match contains."""
    run, at = "", 0
    while at < len(pattern):
        char, end = pattern[at], at + 1
        if field := _FIELD.match(pattern, at):
            if field[2] in KINDS:
                char, end = "", field.end()
            else:
                raise PatternProblem(f"unknown type `{field[2]}`", at, len(field[0]), "one of " + ", ".join(KINDS))
        elif char == "\\":
            end = at + 2
            char = pattern[at + 1] if _PUNCTUATION.match(pattern[at + 1 : at + 2]) else ""
        elif char == "(":
            char, end = "", _group_end(pattern, at)
        elif char == "[":
            char, end = "", _class_end(pattern, at)
        elif char == "|":
            raise PatternProblem("`|` stands inside a group: `(?:a|b)`", at)
        elif char in "^$.":
            char = ""
        repeat = _REPEAT.match(pattern, end)
        if char and not repeat:
            run += char
        else:
            yield run
            run = char if repeat and repeat[0] == "+" else ""
        at = repeat.end() if repeat else end
    yield run


def _group_end(pattern: str, start: int) -> int:
    depth, at = 0, start
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
        elif pattern[at] == "[":
            at = _class_end(pattern, at) - 1
        elif pattern[at] == "(":
            if not pattern.startswith("(?:", at):
                raise PatternProblem("groups are `(?:...)`; what is wanted is a field `{name:type}`", at, 3)
            depth += 1
        elif pattern[at] == ")":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    raise PatternProblem("`(` is never closed", start)


def _class_end(pattern: str, start: int) -> int:
    at = start + 1 + pattern.startswith("^", start + 1)
    at += pattern.startswith("]", at)
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    if at >= len(pattern):
        raise PatternProblem("`[` is never closed", start)
    return at + 1
