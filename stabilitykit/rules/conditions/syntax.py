"""The grammar of the rule language: text to syntax trees. Names, units and types are checked later."""

from __future__ import annotations

from stabilitykit.rules.conditions.descent import WORD_OPERATORS, Parser, Tree
from stabilitykit.rules.conditions.lexer import ID, NAME, SyntaxProblem, Token

__all__ = ["FUNCTIONS", "parse_condition", "read_condition"]

FUNCTIONS = {"abs": 1, "prev": 1, "delta": 1, "min": 2, "max": 2, "mean": 2, "count": 2}
"""Functions with the number of their arguments."""
_RELOPS = frozenset((">", ">=", "<", "<=", "==", "!="))


class _Condition(Parser):
    """Conditions: ``or`` over ``and`` over ``not`` over comparisons over sums."""

    def condition(self) -> Tree:
        left = self.conjunction()
        while self.sees("or"):
            self.next()
            left = self.join("or", left, self.conjunction())
        return left

    def conjunction(self) -> Tree:
        left = self.negation()
        while self.sees("and"):
            self.next()
            left = self.join("and", left, self.negation())
        return left

    def negation(self) -> Tree:
        if not self.sees("not"):
            return self.comparison()
        start = self.next().start
        self.deeper()
        inner = self.negation()
        self.level -= 1
        return self.node("not", start, inner.end, (inner,))

    def comparison(self) -> Tree:
        left, right = self.compared(self.sum())
        while (token := self.token).text in _RELOPS or self.sees("in"):
            width = token.stop - token.start
            hint = "write `1 < x and x < 5`"
            self.problems.append(SyntaxProblem("SK421", token.start, width, "comparisons do not chain", hint))
            # read on as it was meant, to find further mistakes
            chained, right = self.compared(right)
            left = self.join("and", left, chained)
        return left

    def compared(self, left: Tree) -> tuple[Tree, Tree]:
        """Read what may stand behind a sum: the comparison, and its right side."""
        token = self.token
        if token.text in _RELOPS:
            self.next()
            right = self.sum()
            return self.join("cmp", left, right, token.text), right
        if self.sees("in"):
            return self.membership(left), left
        return left, left

    def membership(self, left: Tree) -> Tree:
        self.next()
        self.deeper()
        self.expect("{")
        values = [self.word()]
        while self.sees(","):
            self.next()
            values.append(self.word())
        end = self.expect("}").stop
        self.nodes += 3 * (len(values) - 1)  # it becomes one comparison for each value
        self.level -= 1
        return self.node("in", left.offset, end, (left, *values))

    def word(self) -> Tree:
        token = self.token
        if token.kind != "word" or not NAME.fullmatch(token.text):
            raise self.unexpected("a word of the enum")
        self.next()
        return self.node("name", token.start, token.stop, name=token.text)

    def sum(self) -> Tree:
        left = self.term()
        while (token := self.token).kind == "op" and token.text in "+-":
            self.next()
            left = self.join(token.text, left, self.term())
        return left

    def term(self) -> Tree:
        left = self.primary()
        while (token := self.token).kind == "op" and token.text in "*/":
            self.next()
            left = self.join(token.text, left, self.primary())
        return left

    def negative(self) -> Tree:
        start = self.next().start
        self.deeper()
        inner = self.primary()
        self.level -= 1
        return self.node("neg", start, inner.end, (inner,))

    def primary(self) -> Tree:
        token = self.token
        if token.kind == "num":
            return self.number()
        if token.kind == "word" and token.text not in WORD_OPERATORS:
            return self.operand()
        if token.kind == "rule":
            self.next()
            if not ID.fullmatch(token.text):
                raise SyntaxProblem(
                    "SK401",
                    token.start,
                    token.stop - token.start,
                    "a badly formed rule id",
                    "ids are like `slow-turns`",
                )
            return self.node("rule", token.start, token.stop, name=token.text)
        if token.kind == "dotted":
            self.next()
            return self.node("dotted", token.start, token.stop, name=token.text)
        if self.sees("("):
            self.next()
            self.deeper()
            inner = self.condition()
            self.level -= 1
            self.expect(")")
            return inner
        if self.sees("-"):
            return self.negative()
        raise self.unexpected("a signal, number or `(`")

    def operand(self) -> Tree:
        token = self.next()
        if self.sees("("):
            return self.call(token)
        width = token.stop - token.start
        if not NAME.fullmatch(token.text):
            lower = token.text.lower()
            hint = f"write `{lower}`" if NAME.fullmatch(lower) else ""
            raise SyntaxProblem("SK401", token.start, width, "names are lower case: letters, digits, `_`", hint)
        if token.text in ("true", "false"):
            hint = "a bool stands alone: `x` or `not x`"
            self.problems.append(SyntaxProblem("SK422", token.start, width, f"`{token.text}` in a condition", hint))
        elif token.text in FUNCTIONS:
            self.problems.append(_arity(token, 0))
        return self.node("name", token.start, token.stop, name=token.text)

    def call(self, token: Token) -> Tree:
        self.next()
        self.deeper()
        args = [] if self.sees(")") else [self.condition()]
        while self.sees(","):
            self.next()
            args.append(self.condition())
        self.level -= 1
        end = self.expect(")").stop
        if len(args) != FUNCTIONS.get(token.text, -1):
            self.problems.append(_arity(token, len(args)))
        return self.node("call", token.start, end, tuple(args), token.text)


def _arity(token: Token, given: int) -> SyntaxProblem:
    width = token.stop - token.start
    wanted = FUNCTIONS.get(token.text)
    if wanted is None:
        hint = f"functions are {' '.join(FUNCTIONS)}"
        message = f"unknown function `{token.text[:40]}`"
        return SyntaxProblem("SK306", token.start, width, message, hint, (token.text, FUNCTIONS))
    hint = {"mean": "mean(x, 5 turns)", "count": "count(x > 3, 5 turns)"}.get(token.text, "")
    if wanted == 2 and not hint:
        hint = f"{token.text}(x, y) or {token.text}(x, 5 turns)"
    plural = "arguments" if wanted > 1 else "argument"
    return SyntaxProblem("SK306", token.start, width, f"`{token.text}` wants {wanted} {plural}, not {given}", hint)


def read_condition(text: str) -> tuple[Tree | None, list[SyntaxProblem]]:
    """Parse a condition and report every mistake of syntax; the tree is None after the last one."""
    try:
        parser = _Condition(text)
    except SyntaxProblem as problem:
        return None, [problem]
    try:
        tree = parser.condition()
        parser.finish("`and`, `or` or a comparison")
    except SyntaxProblem as problem:
        return None, [*parser.problems, problem]
    return tree, parser.problems


def parse_condition(text: str) -> Tree:
    """Parse a condition.

    Raises
    ------
    SyntaxProblem
        The first mistake: SK401, SK306, SK411 (unknown unit), SK421, SK422, SK601.
    """
    tree, problems = read_condition(text)
    if problems or tree is None:
        raise min(problems, key=lambda problem: problem.offset)
    return tree
