"""Conditions: names, units, types and scopes. A text becomes a checked `Node`, or all its mistakes."""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs

from stabilitykit.rules.conditions.arithmetic import Arithmetic
from stabilitykit.rules.conditions.descent import Tree
from stabilitykit.rules.conditions.lexer import SyntaxProblem
from stabilitykit.rules.conditions.names import Names, Problems
from stabilitykit.rules.conditions.syntax import read_condition
from stabilitykit.rules.conditions.terms import AND, COMPARISON, NOT, OR, Term, narrower
from stabilitykit.rules.pack import Node

__all__ = ["Names", "check_condition", "walk"]


class _Checker(Arithmetic):
    """Checks one condition from the leaves up; a mistake silences only what depends on it."""

    def verdict(self, tree: Tree) -> Term:
        """Check something that must be true, false or unknown."""
        kind = tree.kind
        if kind in ("or", "and"):
            return self._junction(tree)
        if kind == "not":
            return self._not(tree)
        if kind == "in":
            return self._membership(tree)
        if kind == "cmp":
            return self._comparison(tree)
        return self._truth(tree)

    def _junction(self, tree: Tree) -> Term:
        a, b = self.verdict(tree.args[0]), self.verdict(tree.args[1])
        return _joined(tree.kind, a, b, tree)

    def _not(self, tree: Tree) -> Term:
        inner = self.verdict(tree.args[0])
        if inner.node is None:
            return inner
        text = f"not {inner.within(NOT)}"
        node = Node("not", (inner.node,), scope=inner.node.scope, text=text)
        return Term(node, tree, text, NOT, "verdict")

    def _truth(self, tree: Tree) -> Term:
        if tree.kind == "rule":
            return self._rule(tree)
        term = self.value(tree)
        if term.base == "bad" or term.node is None:
            return term
        if term.base != "bool":
            what = "a number" if term.base == "number" else "a word"
            hint = "compare it: `x > 3`" if term.base == "number" else "compare it: `x == word`"
            return self.bad(tree, "SK402", f"{what} is no condition", hint)
        if term.node.op == "param":
            return self.bad(tree, "SK422", "a bool param in a condition", "use it in a setting, or `enabled: false`")
        node = Node("truth", (term.node,), scope=term.node.scope, text=term.text)
        return Term(node, tree, term.text, base="verdict")

    def _rule(self, tree: Tree) -> Term:
        name, names = tree.name, self.names
        if name in names.disabled:
            return self.bad(tree, "SK305", f"rule `{name}` is disabled", "`enabled: false` removes a rule")
        if name not in names.rules:
            return self.bad(tree, "SK305", f"unknown rule `{name[:60]}`", near=(name, names.rules))
        scope = names.rules[name] or self.fallback_scope
        text = f"rule:{name}"
        return Term(Node("rule", name=name, scope=scope, text=text), tree, text, base="verdict")

    def _comparison(self, tree: Tree) -> Term:
        left, right = tree.args
        l_words, r_words = self.words(left), self.words(right)
        if l_words and right.kind == "name" and (right.name in l_words or not r_words):
            a, b = self.value(left), self.word(right, l_words)
        elif r_words and left.kind == "name" and (left.name in r_words or not l_words):
            a, b = self.word(left, r_words), self.value(right)
        else:
            a, b = self.value(left), self.value(right)
        if a.node is None or b.node is None:
            return Term(None, tree, base="bad")
        if "enum" in (a.base, b.base):
            return self._enums(tree, a, b)
        return self._numbers(tree, self.number_of(a), self.number_of(b))

    def words(self, tree: Tree) -> tuple[str, ...]:
        """Give the words of an enum operand; none for any other operand."""
        if tree.kind == "name":
            signal = self.names.signals.get(tree.name)
            return signal.values if signal is not None and signal.kind == "enum" else ()
        if tree.kind == "call" and tree.name == "prev" and len(tree.args) == 1:
            return self.words(tree.args[0])
        return ()

    def word(self, tree: Tree, words: tuple[str, ...]) -> Term:
        """Check a word beside an enum."""
        if tree.name not in words:
            hint = f"its values are {' '.join(words)}"
            return self.bad(tree, "SK416", f"unknown value `{tree.name[:60]}`", hint, (tree.name, words))
        value = float(words.index(tree.name))
        # its own text is the number: the same word may be another number in another enum
        node = Node("num", value=value, unit="enum", text=str(words.index(tree.name)))
        return Term(node, tree, tree.name, base="enum", values=words)

    def _enums(self, tree: Tree, a: Term, b: Term) -> Term:
        if tree.name not in ("==", "!="):
            return self.bad(tree, "SK402", "words of an enum have no order", "compare them with == or !=")
        if a.base == "word":
            a = self.param_word(a, b.values)
        elif b.base == "word":
            b = self.param_word(b, a.values)
        if a.node is None or b.node is None:
            return Term(None, tree, base="bad")
        if a.base != b.base or a.values != b.values:
            return self.bad(tree, "SK410", "two different enums" if a.base == b.base else "an enum beside a number")
        return self.compared(tree, a, b, tree.name)

    def param_word(self, term: Term, words: tuple[str, ...]) -> Term:
        """Check a param that holds a word, beside an enum."""
        held = str(self.names.params[term.text.partition(".")[2]].value)
        if held not in words or term.node is None:
            hint = f"its values are {' '.join(words)}"
            message = f"`{term.text}` is `{held[:60]}`, no value of this enum"
            return self.bad(term.tree, "SK416", message, hint, (held, words))
        node = attrs.evolve(term.node, value=float(words.index(held)), unit="enum")
        return attrs.evolve(term, node=node, base="enum", values=words)

    def _numbers(self, tree: Tree, a: Term, b: Term) -> Term:
        if a.node is None or b.node is None:
            return Term(None, tree, base="bad")
        pair = self.unified(tree, a, b)
        if pair is None:
            return Term(None, tree, base="bad")
        a, b = pair
        if tree.name in ("==", "!="):
            measured = next((t for t in (a, b) if not t.whole and not _is_fixed(t)), None)
            if measured is not None:
                return self.bad(measured.tree, "SK413", f"`{tree.name}` on a measured number", "use >=, <= or a range")
        always = _constant(tree.name, a, b)
        if not (a.node and a.node.scope) and not (b.node and b.node.scope):
            return self.bad(tree, "SK415", "a comparison that reads no signal, detector or rule")
        if always:
            culprit = next((t for t in (b, a) if _is_fixed(t)), b)
            other = a if culprit is b else b
            return self.bad(culprit.tree, "SK414", f"this comparison is always {always}", _domain_hint(other))
        return self.compared(tree, a, b, tree.name)

    def compared(self, tree: Tree, a: Term, b: Term, relop: str) -> Term:
        """Make a comparison of two terms that may be compared."""
        assert a.node is not None
        assert b.node is not None
        text = f"{a.text} {relop} {b.text}"
        scope = narrower(a.node.scope, b.node.scope)
        node = Node("cmp", (a.node, b.node), relop, scope=scope, text=text)
        return Term(node, tree, text, COMPARISON, "verdict")

    def _membership(self, tree: Tree) -> Term:
        left, *values = tree.args
        term = self.value(left)
        if term.node is None:
            return term
        if term.base != "enum":
            return self.bad(left, "SK402", "`in` wants a word of an enum", "compare numbers with >, >=, <, <=")
        words = [self.word(value, term.values) for value in {value.name: value for value in values}.values()]
        if any(word.node is None for word in words):
            return Term(None, tree, base="bad")
        result = self.compared(tree, term, words[0], "==")
        for word in words[1:]:
            result = _joined("or", result, self.compared(tree, term, word, "=="), tree)
        return result


def _joined(op: str, a: Term, b: Term, tree: Tree) -> Term:
    if a.node is None or b.node is None:
        return Term(None, tree, base="bad")
    binding = OR if op == "or" else AND
    text = f"{a.within(binding)} {op} {b.within(binding)}"
    scope = narrower(a.node.scope, b.node.scope)
    return Term(Node(op, (a.node, b.node), scope=scope, text=text), tree, text, binding, "verdict")


def _constant(relop: str, a: Term, b: Term) -> str:
    """Say ``true`` or ``false`` when the domains leave no other result."""
    (a_lo, a_hi), (b_lo, b_hi) = a.domain, b.domain
    if relop in ("<", "<="):
        relop, (a_lo, a_hi), (b_lo, b_hi) = relop.replace("<", ">"), (b_lo, b_hi), (a_lo, a_hi)
    if relop == ">":
        return "true" if a_lo > b_hi else "false" if a_hi <= b_lo else ""
    if relop == ">=":
        return "true" if a_lo >= b_hi else "false" if a_hi < b_lo else ""
    apart = a_hi < b_lo or b_hi < a_lo
    apart = apart or not (a.whole and b.whole)
    if apart:
        return "false" if relop == "==" else "true"
    return ""


def _is_fixed(term: Term) -> bool:
    """Say whether a term has one value only: a literal, a param."""
    return term.domain[0] == term.domain[1]


def _domain_hint(term: Term) -> str:
    lo, hi = term.domain
    if math.isinf(lo) and math.isinf(hi):
        return ""
    unit = "" if term.unit.is_plain else f" {term.unit.name}"
    hint = f"`{term.text}` is within {lo:g} to {hi:g}{unit}"
    return hint + (": write `92 %` or 0.92" if (lo, hi) == (0.0, 1.0) else "")


def walk(node: Node) -> Iterator[Node]:
    """Give a node and all below it, parents first."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(top.args))


def check_condition(
    text: str, names: Names, *, rule_scope_hint: str | None = None
) -> tuple[Node | None, list[SyntaxProblem]]:
    """Check a condition.

    Parameters
    ----------
    text
        The condition as written.
    names
        What it may refer to.
    rule_scope_hint
        Scope of a `rule:` whose own scope is not known (None in `names`); session when not given.

    Returns
    -------
    node
        The checked condition, None when anything is wrong with it.
    problems
        Every mistake, by position.
    """
    tree, problems = read_condition(text)
    if tree is None:
        return None, sorted(problems, key=lambda problem: problem.offset)
    checker = _Checker(names, Problems(problems), rule_scope_hint or "session")
    syntax = {problem.offset for problem in problems}
    count = len(problems)
    node = checker.verdict(tree).node
    # A word that the syntax refused is not also an unknown name.
    problems[count:] = [problem for problem in problems[count:] if problem.offset not in syntax]
    problems.sort(key=lambda problem: problem.offset)
    return (None, problems) if problems else (node, problems)
