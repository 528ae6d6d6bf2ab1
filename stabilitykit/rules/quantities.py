"""Values with units as YAML holds them: literals of params and settings, counts of turns."""

from __future__ import annotations

from typing import NamedTuple

from stabilitykit.rules.descent import TURNS_HINT, Parser, Tree
from stabilitykit.rules.lexer import SyntaxProblem
from stabilitykit.rules.units import TURN_WORDS, scaled, unit_of

__all__ = ["Literal", "Turns", "parse_literal", "parse_turns"]


class Literal(NamedTuple):
    """A literal: ``unit`` is a unit, ``ratio`` after `%`, ``bool``, or "" for a bare number."""

    value: float | bool
    unit: str


class Turns(NamedTuple):
    """A count of turns or samples, or the param that holds it."""

    n: int
    word: str
    param: str = ""


def parse_literal(text: str, unit: str | None = None) -> Literal:
    """Parse a literal of a param or setting, with an optional sign.

    Parameters
    ----------
    text
        ``80 ms``, ``7 %``, ``-3``, ``true``.
    unit
        When given, the number is counted in this unit.

    Raises
    ------
    SyntaxProblem
        SK401; SK411 without or with an unknown unit, SK410 of another dimension.
    """
    parser = Parser(text)
    token = parser.token
    if token.kind == "word" and token.text in ("true", "false"):
        parser.next()
        parser.finish("nothing more")
        return Literal(token.text == "true", "bool")
    sign = "-" if parser.sees("-") else ""
    if sign:
        parser.next()
    if parser.token.kind != "num":
        raise parser.unexpected("a number with its unit")
    tree = parser.number()
    if parser.problems:
        raise parser.problems[0]
    parser.finish("nothing more")
    return _literal(sign + tree.name, tree, unit)


def _literal(number: str, tree: Tree, unit: str | None) -> Literal:
    own = {"": "", "%": "ratio"}.get(tree.unit, TURN_WORDS.get(tree.unit, tree.unit))
    width = tree.end - tree.offset
    if unit is None:
        unit = own
    wanted, given = unit_of(unit), unit_of(tree.unit)
    if wanted is None or given is None or wanted.dim != given.dim:
        code = "SK411" if tree.unit in ("", "%") else "SK410"
        message = f"a number in {unit or 'no unit'} wanted"
        raise SyntaxProblem(code, tree.offset, width, message, f"write `{number} {unit}`")
    value = scaled(number, tree.unit, unit)
    if value in (float("inf"), float("-inf")):
        raise SyntaxProblem("SK106", tree.offset, width, "the number overflows a 64-bit float")
    return Literal(value, unit)


def parse_turns(text: str) -> Turns:
    """Parse ``3 turns``, ``3 samples`` or ``params.x``.

    Raises
    ------
    SyntaxProblem
        SK412 for anything else.
    """
    try:
        parser = Parser(text)
        tree = parser.turns()
        parser.finish("nothing more")
    except SyntaxProblem as problem:
        raise SyntaxProblem("SK412", problem.offset, problem.width, "turns wanted", TURNS_HINT) from None
    if parser.problems:
        raise parser.problems[0]
    if tree.kind == "dotted":
        return Turns(0, "", tree.name.partition(".")[2])
    return Turns(int(tree.name[:6]), TURN_WORDS[tree.unit])
