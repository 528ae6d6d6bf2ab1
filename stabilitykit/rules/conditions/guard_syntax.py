"""The grammar of guards: ``any critical``, ``none for 3 turns``, ``at least 2 warning tagged kv``."""

from __future__ import annotations

from stabilitykit.rules.conditions.descent import Parser, Tree
from stabilitykit.rules.conditions.lexer import ID, SyntaxProblem, Token
from stabilitykit.rules.pack import SEVERITIES

__all__ = ["parse_guard"]


class _Guard(Parser):
    """Guards: ``or`` over ``and`` over ``not`` over ranges of rules, then ``for``."""

    def guard(self) -> Tree:
        inner = self.either()
        if self.sees("for"):
            self.next()
            turns = self.turns()
            inner = self.node("for", inner.offset, turns.end, (inner, turns))
        return inner

    def either(self) -> Tree:
        left = self.both()
        while self.sees("or"):
            self.next()
            left = self.join("or", left, self.both())
        return left

    def both(self) -> Tree:
        left = self.negation()
        while self.sees("and"):
            self.next()
            left = self.join("and", left, self.negation())
        return left

    def negation(self) -> Tree:
        if not self.sees("not"):
            return self.atom()
        start = self.next().start
        self.deeper()
        inner = self.negation()
        self.level -= 1
        return self.node("not", start, inner.end, (inner,))

    def atom(self) -> Tree:
        token = self.token
        if token.kind == "rule" and ID.fullmatch(token.text):
            self.next()
            return self.node("rule", token.start, token.stop, name=token.text)
        if self.sees("("):
            self.next()
            self.deeper()
            inner = self.either()
            self.level -= 1
            self.expect(")")
            return inner
        if self.sees("any") or self.sees("none"):
            self.next()
            return self.range(token, token.text, "1", token.stop)
        if self.sees("at"):
            self.next()
            self.expect("least")
            number = self.token
            if number.kind != "num" or number.unit or not number.text.isdigit():
                raise self.unexpected("a whole number")
            self.next()
            return self.range(token, "atleast", number.text, number.stop)
        raise self.unexpected("`any`, `none`, `at least n` or `rule:id`")

    def range(self, first: Token, kind: str, number: str, end: int) -> Tree:
        """Read the severity and tag behind ``any``, ``none``, ``at least n``."""
        severity = ""
        tag: tuple[Tree, ...] = ()
        if self.token.text in SEVERITIES and self.token.kind == "word":
            end, severity = self.token.stop, self.next().text
        if self.token.kind == "tag":
            word = self.next()
            if not ID.fullmatch(word.text):
                width = word.stop - word.start
                raise SyntaxProblem("SK401", word.start, width, "a badly formed tag", "tags are like `kv-cache`")
            tag = (self.node("name", word.start, word.stop, name=word.text),)
            end = word.stop
        return self.node(kind, first.start, end, tag, number, severity)


def parse_guard(text: str) -> Tree:
    """Parse a guard.

    Raises
    ------
    SyntaxProblem
        The first mistake: SK401, SK412 (after ``for``), SK601.
    """
    parser = _Guard(text)
    tree = parser.guard()
    parser.finish("`and`, `or` or `for`")
    if parser.problems:
        raise parser.problems[0]
    return tree
