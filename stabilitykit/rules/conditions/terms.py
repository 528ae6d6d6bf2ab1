"""Checked expressions: a node with its unit, its domain and its canonical text."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

import attrs

from stabilitykit.rules.conditions.descent import Tree
from stabilitykit.rules.conditions.units import PLAIN, Unit, exact, to_float, unit_of
from stabilitykit.rules.pack import Node
from stabilitykit.signals import scope_rank

__all__ = ["Term", "at_one_scale", "bounds", "enclosed", "literal_term", "narrower", "number_text", "quotients"]

Base = Literal["number", "bool", "enum", "word", "verdict", "bad"]
Bounds = tuple[float, float]
EVERYTHING: Bounds = (-math.inf, math.inf)

OR, AND, NOT, COMPARISON, SUM, PRODUCT, SIGN, ATOM = range(1, 9)
"""How strongly the top operator of a text binds."""


@attrs.define(eq=False)
class Term:
    """One checked expression.

    Parameters
    ----------
    node
        None only when `base` is ``bad``: the mistake was reported, and no other follows from it.
    text, binding
        Canonical text as its parent shows it, and how strongly its top operator binds.
    base
        What kind of value it is; ``word`` is a param that holds a word of an enum.
    unit
        Unit of a number.
    whole
        True for counts, which ``==`` may compare.
    bare
        True when a number without unit may stand beside it although it has one (token counts).
    constant
        True for bare numbers and what is computed from them: they take the unit of the other side.
    literal
        The literal as written, with its unit, when it is one: its scale changes exactly.
    domain
        Least and greatest value.
    values
        The words of an enum.
    """

    node: Node | None
    tree: Tree
    text: str = ""
    binding: int = ATOM
    base: Base = "number"
    unit: Unit = PLAIN
    whole: bool = False
    bare: bool = False
    constant: bool = False
    literal: tuple[str, str] | None = None
    domain: Bounds = EVERYTHING
    values: tuple[str, ...] = ()

    def within(self, binding: int) -> str:
        """Give the text, in parentheses when its operator binds less than `binding`."""
        return self.text if self.binding >= binding else f"({self.text})"


def narrower(a: str, b: str) -> str:
    """Give the narrower of two scopes; a constant's ("") does not count."""
    if a == b or not b:
        return a
    return b if not a or scope_rank(b) < scope_rank(a) else a


def number_text(value: float) -> str:
    """Write a number as briefly as it reads back."""
    text = repr(value)
    return text[:-2] if text.endswith(".0") else text


def literal_term(tree: Tree, sign: str = "") -> Term:
    """Make a number of a literal: counted in its own unit, `%` as a ratio."""
    unit = unit_of(tree.unit) or PLAIN
    return _literal(tree, f"{sign}{tree.name}", tree.unit, PLAIN if unit.is_plain else unit)


@lru_cache(maxsize=4096)
def _number(number: str, written: str, unit: Unit) -> tuple[Node, str]:
    """Count a literal in a unit: its node, and its text as a parent shows it."""
    own = unit_of(written) or PLAIN
    value = _counted(number, own, unit)
    name = unit.name if not unit.is_plain else "count" if value.is_integer() else "ratio"
    node = Node("num", value=value, unit=name, text=_literal_text(value, unit))
    # a unit that the language cannot write (tokens per ms) is shown as it was written
    shown = unit if unit is own or unit_of(unit.name) == unit else PLAIN if own.is_plain else own
    return node, node.text if shown is unit else _literal_text(_counted(number, own, shown), shown)


def _literal(tree: Tree, number: str, written: str, unit: Unit) -> Term:
    node, text = _number(number, written, unit)
    value = node.value
    return Term(
        node,
        tree,
        text,
        SIGN if value < 0 else ATOM,
        unit=unit,
        whole=value.is_integer(),
        constant=not written,
        literal=(number, written),
        domain=(value, value),
    )


def _counted(number: str, own: Unit, unit: Unit) -> float:
    """Count a literal in a unit: the float64 nearest to the exact number, zero without sign."""
    whole = exact(number) if own is not unit else None
    return (float(number) if whole is None else to_float(whole * own.scale / unit.scale)) + 0.0


def _literal_text(value: float, unit: Unit) -> str:
    return number_text(value) if unit.is_plain else f"{number_text(value)} {unit.name}"


def rescaled(term: Term, unit: Unit) -> Term:
    """Count a term in another unit of its dimension, which is a whole number of times smaller."""
    if term.literal is not None:
        return _literal(term.tree, *term.literal, unit)
    factor = term.unit.scale / unit.scale
    return times(term, factor.numerator, unit)


def times(term: Term, factor: int, unit: Unit) -> Term:
    """Multiply by a whole number; a parent still shows the text as it was."""
    node = term.node
    assert node is not None
    value = float(factor)
    number = Node("num", value=value, unit="count", text=number_text(value))
    text = f"{term.within(PRODUCT)} * {number.text}"
    scaled = Node("*", (node, number), scope=node.scope, unit=unit.name, text=text)
    domain = (term.domain[0] * factor, term.domain[1] * factor)
    return attrs.evolve(term, node=scaled, unit=unit, domain=domain)


def at_one_scale(a: Term, b: Term) -> tuple[Term, Term]:
    """Bring two terms of one dimension to one scale: the coarser is multiplied."""
    if a.unit is b.unit or a.unit.scale == b.unit.scale:
        return a, b
    ratio = a.unit.scale / b.unit.scale
    if ratio.denominator == 1:
        return rescaled(a, b.unit), b
    if ratio.numerator == 1:
        return a, rescaled(b, a.unit)
    # neither is a whole number of the other: both become a whole number of a third
    third = Unit(f"{a.unit.name}/{ratio.numerator}", a.unit.dim, a.unit.scale / ratio.numerator)
    return rescaled(a, third), rescaled(b, third)


def bounds(values: Iterable[float]) -> Bounds:
    """Give the least and greatest of some values; everything, when one of them is no number."""
    listed = list(values)
    if any(math.isnan(value) for value in listed):
        return EVERYTHING
    return min(listed), max(listed)


def enclosed(op: str, a: Bounds, b: Bounds) -> Bounds:
    """Enclose the result of ``+ - * / min max``."""
    if op == "+":
        return bounds((a[0] + b[0], a[1] + b[1]))
    if op == "-":
        return bounds((a[0] - b[1], a[1] - b[0]))
    if op == "*":
        return bounds(x * y for x in a for y in b)
    if op == "/":
        return quotients(a, b)
    pick = min if op == "min" else max
    return pick(a[0], b[0]), pick(a[1], b[1])


def quotients(a: Bounds, b: Bounds) -> Bounds:
    """Enclose ``a / b``; a division by zero is unknown, so only its neighbourhood counts."""
    if b[0] == 0.0 and b[1] > 0.0 and a[0] >= 0.0:
        return bounds((a[0] / b[1], math.inf))
    if b[0] <= 0.0 <= b[1]:
        return EVERYTHING
    return bounds(x / y for x in a for y in b)
