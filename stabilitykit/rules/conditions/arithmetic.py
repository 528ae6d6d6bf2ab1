"""The numbers of a condition: operands, arithmetic, and the functions with memory."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import attrs

from stabilitykit.rules.conditions.descent import Tree
from stabilitykit.rules.conditions.operands import Operands
from stabilitykit.rules.conditions.terms import (
    ATOM,
    PRODUCT,
    SIGN,
    SUM,
    Term,
    at_one_scale,
    enclosed,
    literal_term,
    narrower,
)
from stabilitykit.rules.conditions.units import TURN_WORDS, is_listed, quotient
from stabilitykit.rules.pack import Node
from stabilitykit.signals import scope_rank

__all__ = ["MAX_WINDOW", "MIN_WINDOW", "Arithmetic"]

MIN_WINDOW, MAX_WINDOW = 2, 64
_WINDOWS = {"mean": "mean", "min": "wmin", "max": "wmax"}


class Arithmetic(Operands, ABC):
    """Checks everything that has a value."""

    @abstractmethod
    def verdict(self, tree: Tree) -> Term:
        """Check a condition inside ``count``."""

    def value(self, tree: Tree) -> Term:
        """Check an expression of any kind."""
        kind = tree.kind
        if kind == "num":
            return self._literal(tree)
        if kind == "name":
            return self.signal(tree)
        if kind == "dotted":
            return self.dotted(tree)
        if kind in ("+", "-", "*", "/"):
            return self._binary(tree)
        if kind == "neg":
            return self._negative(tree)
        if kind == "call":
            return self._call(tree)
        inner = self.verdict(tree)
        if inner.node is None:
            return inner
        return self.bad(tree, "SK402", "true or false used as a number", "count(c, 5 turns) makes a number of it")

    def number_of(self, term: Term) -> Term:
        """Refuse a term that is no number."""
        if term.node is None or term.base == "number":
            return term
        what = {"bool": "a bool", "enum": "an enum", "word": "a word"}.get(term.base, "a condition")
        hint = "a bool stands alone: `x` or `not x`" if term.base == "bool" else ""
        return self.bad(term.tree, "SK402", f"{what} used as a number", hint)

    def number(self, tree: Tree) -> Term:
        """Check an expression that must be a number."""
        return self.number_of(self.value(tree))

    def _literal(self, tree: Tree, sign: str = "") -> Term:
        if tree.unit == "?":  # an unknown unit: reported by the parser
            return Term(None, tree, base="bad")
        return self.finite(literal_term(tree, sign))

    def finite(self, term: Term) -> Term:
        """Refuse a literal that overflows."""
        if term.node is not None and term.node.op == "num" and math.isinf(term.node.value):
            return self.bad(term.tree, "SK106", "the number overflows a 64-bit float")
        return term

    def _negative(self, tree: Tree) -> Term:
        inner = self.number(tree.args[0])
        if inner.node is None:
            return inner
        if inner.literal is not None:
            sign, number = ("", inner.literal[0][1:]) if inner.literal[0].startswith("-") else ("-", inner.literal[0])
            return literal_term(attrs.evolve(tree, name=number, unit=inner.literal[1]), sign)
        lo, hi = inner.domain
        return self.computed("neg", tree, (inner,), f"-{inner.within(SIGN)}", SIGN, domain=(-hi, -lo))

    def computed(
        self, op: str, tree: Tree, args: tuple[Term, ...], text: str, binding: int, n: int = 0, **changes: Any
    ) -> Term:
        """Make an operation of one or two arguments: like the first that is no constant, but for the changes."""
        a, b = args[0], args[-1]
        like = b if a.constant and not b.constant else a
        fields = {
            "unit": like.unit,
            "whole": a.whole and b.whole,
            "bare": a.bare or b.bare,
            "constant": a.constant and b.constant,
            **changes,
        }
        term = Term(None, tree, text, binding, **fields)
        nodes = tuple([arg.node for arg in args if arg.node is not None])
        scope = narrower(nodes[0].scope, nodes[-1].scope)
        shown = term.unit.name if not term.unit.is_plain else "count" if _counts(op, nodes) else "ratio"
        term.node = Node(op, nodes, "", 0.0, n, scope, shown, text)
        return term

    def _binary(self, tree: Tree) -> Term:
        a, b = self.number(tree.args[0]), self.number(tree.args[1])
        if a.node is None or b.node is None:
            return Term(None, tree, base="bad")
        if tree.kind in ("*", "/"):
            return self._product(tree, a, b)
        pair = self.unified(tree, a, b)
        if pair is None:
            return Term(None, tree, base="bad")
        a, b = pair
        text = f"{a.within(SUM)} {tree.kind} {b.within(SUM + 1)}"
        return self.computed(tree.kind, tree, (a, b), text, SUM, domain=enclosed(tree.kind, a.domain, b.domain))

    def _product(self, tree: Tree, a: Term, b: Term) -> Term:
        unit = quotient(a.unit, b.unit, 1 if tree.kind == "*" else -1)
        if not is_listed(unit):
            what = f"{a.unit.name} {tree.kind} {b.unit.name} is no unit of the language"
            return self.bad(tree, "SK410", what, "another order may help: a / b * c")
        text = f"{a.within(PRODUCT)} {tree.kind} {b.within(PRODUCT + 1)}"
        whole = a.whole and b.whole and tree.kind == "*"
        # a count stays one when a plain number scales it
        bare = (a.bare and b.unit.is_plain) or (tree.kind == "*" and b.bare and a.unit.is_plain)
        domain = enclosed(tree.kind, a.domain, b.domain)
        return self.computed(tree.kind, tree, (a, b), text, PRODUCT, unit=unit, whole=whole, bare=bare, domain=domain)

    def unified(self, tree: Tree, a: Term, b: Term) -> tuple[Term, Term] | None:
        """Bring two numbers to one unit; None after reporting why they have none."""
        if a.unit is b.unit and not a.unit.is_plain:
            return a, b
        if a.unit.dim == b.unit.dim:
            for x, y in ((a, b), (b, a)):
                if (
                    x.literal is not None
                    and x.literal[1] == "%"
                    and y.whole
                    and not y.constant
                    and y.literal is None
                    and y.unit.is_plain
                ):
                    self.bad(x.tree, "SK411", "a count takes bare numbers", f"write {x.text}")
                    return None
            a, b = at_one_scale(a, b)
            a, b = self.finite(a), self.finite(b)
            return (a, b) if a.node is not None and b.node is not None else None
        for x, y in ((a, b), (b, a)):
            if x.constant and y.bare:
                taken = self._taken(x, y)
                return (taken, y) if x is a else (y, taken)
            if x.constant or (x.literal is not None and x.literal[1] == "%"):
                number = x.literal[0] if x.literal is not None else x.text
                hint = f"write `{number} {y.unit.name}`" if is_listed(y.unit) and x.literal is not None else ""
                self.bad(x.tree, "SK411", f"a number in {y.unit.name} wanted", hint)
                return None
        self.bad(tree, "SK410", f"different dimensions: {_dimension(a)} and {_dimension(b)}")
        return None

    def _taken(self, constant: Term, like: Term) -> Term:
        """Give a bare number the unit of the count beside it."""
        if constant.literal is None:
            return attrs.evolve(constant, unit=like.unit)
        tree = attrs.evolve(constant.tree, name=constant.literal[0].lstrip("-"), unit=like.unit.name)
        return literal_term(tree, "-" if constant.literal[0].startswith("-") else "")

    def _call(self, tree: Tree) -> Term:
        name, args = tree.name, tree.args
        if name == "count" and len(args) == 2:
            return self._count(tree)
        if name in ("abs", "prev", "delta") and len(args) == 1:
            return self._unary(tree)
        if name in _WINDOWS and len(args) == 2:
            if name == "mean" or self._is_window(args[1]):
                return self._window(tree)
            return self._greater(tree)
        for arg in args:  # number of arguments or name: reported by the parser
            self.checked(arg)
        return Term(None, tree, base="bad")

    def checked(self, tree: Tree) -> None:
        """Look for mistakes in an argument of an unknown function, whatever its kind."""
        if tree.kind in ("or", "and", "not", "in", "cmp", "rule"):
            self.verdict(tree)
        elif not self._is_window(tree):
            self.value(tree)

    def _unary(self, tree: Tree) -> Term:
        term = self.value(tree.args[0])
        if tree.name == "prev" and term.base == "enum":
            return self._remembered("prev", tree, attrs.evolve(term, tree=tree))
        term = self.number_of(term)
        if term.node is None:
            return term
        lo, hi = term.domain
        if tree.name == "abs":
            least = 0.0 if lo <= 0.0 <= hi else min(abs(lo), abs(hi))
            domain = (least, max(abs(lo), abs(hi)))
            return self.computed("abs", tree, (term,), f"abs({term.text})", ATOM, domain=domain)
        return self._remembered(tree.name, tree, term)

    def _remembered(self, op: str, tree: Tree, term: Term, n: int = 0, window: str = "") -> Term:
        """Make an operation with memory, which lives in the scope of what it reads."""
        assert term.node is not None
        if not term.node.scope:
            return self.bad(tree, "SK415", f"`{tree.name}` of something that never changes")
        text = f"{tree.name}({term.text}{window})"
        if term.base == "enum":
            node = Node(op, (term.node,), scope=term.node.scope, unit="enum", text=text)
            return attrs.evolve(term, node=node, tree=tree, text=text, binding=ATOM)
        lo, hi = term.domain
        domain = enclosed("-", (lo, hi), (lo, hi)) if op == "delta" else (lo, hi)
        whole = term.whole and op != "mean"
        return self.computed(op, tree, (term,), text, ATOM, n, whole=whole, domain=domain)

    def _greater(self, tree: Tree) -> Term:
        a, b = self.number(tree.args[0]), self.number(tree.args[1])
        if a.node is None or b.node is None:
            return Term(None, tree, base="bad")
        pair = self.unified(tree, a, b)
        if pair is None:
            return Term(None, tree, base="bad")
        a, b = pair
        domain = enclosed(tree.name, a.domain, b.domain)
        return self.computed(tree.name, tree, (a, b), f"{tree.name}({a.text}, {b.text})", ATOM, domain=domain)

    def _window(self, tree: Tree) -> Term:
        term = self.number(tree.args[0])
        n, shown = self._turns(tree.args[1], "" if term.node is None else term.node.scope)
        if term.node is None or n is None:
            return Term(None, tree, base="bad")
        return self._remembered(_WINDOWS[tree.name], tree, term, n, f", {shown}")

    def _count(self, tree: Tree) -> Term:
        inner = self.verdict(tree.args[0])
        n, shown = self._turns(tree.args[1], "" if inner.node is None else inner.node.scope)
        if inner.node is None or n is None:
            return Term(None, tree, base="bad")
        text = f"count({inner.text}, {shown})"
        node = Node("count", (inner.node,), "", 0.0, n, inner.node.scope, "count", text)
        return Term(node, tree, text, whole=True, domain=(0.0, float(n)))

    def _is_window(self, tree: Tree) -> bool:
        """Say whether a second argument is a window: turns or samples, or a param of that unit."""
        if tree.kind == "num":
            return tree.unit in TURN_WORDS
        first, _, name = tree.name.partition(".")
        param = self.names.params.get(name) if tree.kind == "dotted" and first == "params" else None
        return param is not None and param.unit in TURN_WORDS

    def _turns(self, tree: Tree, scope: str) -> tuple[int | None, str]:
        """Check a window over memory of a scope ("" when not known): its length and its text."""
        word = "turns" if not scope or scope_rank(scope) == 0 else "samples"
        if not self._is_window(tree):
            known = self.value(tree)
            if known.base != "bad":
                number = tree.name if tree.kind == "num" and tree.name.isdigit() else "3"
                self.bad(tree, "SK412", f"a window in {word} wanted", f"write `{number} {word}`")
            return None, ""
        if tree.kind == "dotted":
            param = self.names.params[tree.name.partition(".")[2]]
            written, said, shown = str(param.value).removesuffix(".0"), TURN_WORDS[param.unit], tree.name
        else:
            written, said, shown = tree.name, TURN_WORDS[tree.unit], ""
        if not written.isdigit():
            self.bad(tree, "SK412", "a window is a whole number", f"write `3 {word}`")
            return None, ""
        if scope and said != word:
            self.bad(tree, "SK412", f"this memory moves once per {word[:-1]}", f"write `{written[:6]} {word}`")
            return None, ""
        n = int(written[:6])
        if not MIN_WINDOW <= n <= MAX_WINDOW:
            self.bad(tree, "SK206", f"a window of {written[:20]}", f"windows hold {MIN_WINDOW} to {MAX_WINDOW} {word}")
            return None, ""
        return n, shown or f"{n} {word}"


def _counts(op: str, nodes: tuple[Node, ...]) -> bool:
    """Say whether a plain result is shown as a count."""
    return op != "/" and all(node.unit == "count" for node in nodes)


def _dimension(term: Term) -> str:
    what = "a plain number" if term.unit.is_plain else f"in {term.unit.name}"
    return f"`{term.text[:40]}` is {what}"
