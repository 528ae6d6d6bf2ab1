"""Syntax trees, and what the parsers of conditions, guards and literals share."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from stabilitykit.rules.conditions.lexer import SyntaxProblem, Token, tokens
from stabilitykit.rules.conditions.units import TURN_WORDS, UNITS, spelt

__all__ = ["MAX_LEVELS", "MAX_NODES", "TURNS_HINT", "WORD_OPERATORS", "Parser", "Tree"]

MAX_NODES = 256
MAX_LEVELS = 16
WORD_OPERATORS = frozenset(("and", "or", "not", "in", "for"))
TURNS_HINT = "a count of turns needs its word: `3 turns`"


@attrs.define(eq=False)
class Tree:
    """One node of a syntax tree; ``offset`` and ``end`` are its place in the text.

    ``kind`` is ``or and not cmp in + - * / neg call num name dotted rule`` in conditions, and
    ``or and not any none atleast rule for`` in guards. ``name`` is the operator, function or
    name; of ``num`` the number as written, with its ``unit``; of ``in`` nothing: the values are
    the arguments after the first. ``atleast`` has the number in ``name``, severity in ``unit``
    and a ``name`` tree for its tag.
    """

    kind: str
    offset: int
    end: int
    args: tuple[Tree, ...] = ()
    name: str = ""
    unit: str = ""

    def walk(self) -> Iterator[Tree]:
        """Give this node and all below it, parents first."""
        stack = [self]
        while stack:
            tree = stack.pop()
            yield tree
            stack.extend(reversed(tree.args))


class Parser:
    """Recursive descent over tokens; mistakes that do not hide what follows are collected."""

    def __init__(self, text: str) -> None:
        self.tokens = tokens(text)
        self.at = 0
        self.token = self.tokens[0]
        self.nodes = 0
        self.level = 0
        self.problems: list[SyntaxProblem] = []

    def next(self) -> Token:
        """Take the token at hand (never the end)."""
        token = self.token
        self.at += 1
        self.token = self.tokens[self.at]
        return token

    def sees(self, text: str) -> bool:
        """Say whether the token at hand is this word or sign."""
        token = self.token
        return token.text == text and token.kind in ("word", "op")

    def node(
        self, kind: str, start: int, end: int, args: tuple[Tree, ...] = (), name: str = "", unit: str = ""
    ) -> Tree:
        """Make a node, within the limit."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise SyntaxProblem("SK601", start, 1, f"more than {MAX_NODES} nodes", "split it, with `rule:id`")
        return Tree(kind, start, end, args, name, unit)

    def join(self, kind: str, left: Tree, right: Tree, name: str = "") -> Tree:
        """Make a node of two arguments."""
        return self.node(kind, left.offset, right.end, (left, right), name or kind)

    def deeper(self) -> None:
        """Enter one more level, within the limit."""
        self.level += 1
        if self.level > MAX_LEVELS:
            start = self.token.start
            raise SyntaxProblem("SK601", start, 1, f"nested more than {MAX_LEVELS} levels", "split it, with `rule:id`")

    def expect(self, text: str) -> Token:
        """Take a certain word or sign."""
        if not self.sees(text):
            raise self.unexpected(f"`{text}`")
        return self.next()

    def unexpected(self, wanted: str) -> SyntaxProblem:
        """Make SK401 for the token at hand."""
        token = self.token
        found = f"`{token.text[:40]}`" if token.kind != "end" else "the end"
        hint = ""
        if token.kind == "word" and token.text.lower() in ("and", "or", "not") and token.text not in WORD_OPERATORS:
            hint = f"write `{token.text.lower()}`"
        elif token.text == "for" and token.kind == "word":
            hint = "in a rule, `for` is a key of its own: `for: 3 turns`"
        return SyntaxProblem("SK401", token.start, token.stop - token.start, f"{wanted} wanted, found {found}", hint)

    def finish(self, wanted: str) -> None:
        """Refuse anything behind the end."""
        if self.token.kind != "end":
            raise self.unexpected(wanted)

    def turns(self) -> Tree:
        """Read ``3 turns`` or ``params.x``."""
        token = self.token
        if token.kind == "dotted" and token.text.startswith("params."):
            self.next()
            return self.node("dotted", token.start, token.stop, name=token.text)
        if token.kind != "num":
            raise self.unexpected("a count of turns")
        self.next()
        if token.unit not in TURN_WORDS or not token.text.isdigit():
            self.problems.append(
                SyntaxProblem("SK412", token.start, token.stop - token.start, "turns wanted", TURNS_HINT)
            )
        return self.node("num", token.start, token.stop, name=token.text, unit=token.unit)

    def number(self) -> Tree:
        """Read a number with its unit."""
        token = self.next()
        end, unit = token.stop, token.unit
        behind = self.token
        if not unit and behind.kind == "word" and behind.text not in WORD_OPERATORS:
            self.next()
            meant = spelt(behind.text)
            hint = meant or f"units are {' '.join(UNITS)}"
            near = None if meant else (behind.text, (*UNITS, *TURN_WORDS))
            width = behind.stop - behind.start
            message = f"unknown unit `{behind.text[:40]}`"
            self.problems.append(SyntaxProblem("SK411", behind.start, width, message, hint, near))
            end, unit = behind.stop, "?"
        return self.node("num", token.start, end, name=token.text, unit=unit)
