"""Nodes with the canonical text, scope and unit that a checker gives them."""

from __future__ import annotations

from collections.abc import Sequence

from stabilitykit.rules.pack import SEVERITIES, Node
from stabilitykit.signals import CATALOGUE, SCOPES, SignalSpec, scope_rank

__all__ = [
    "at_least", "both", "call", "compare", "either", "invert", "literal", "operand", "output", "param", "reference",
    "truth", "window",
]  # fmt: skip

WORDS = {"wmin": "min", "wmax": "max"}


def narrowest(args: Sequence[Node]) -> str:
    """Give the narrowest scope of what the arguments read."""
    ranks = [scope_rank(a.scope) for a in args if a.scope]
    return SCOPES[min(ranks)] if ranks else ""


def literal(value: float, unit: str = "count", word: str = "") -> Node:
    """Write a number with its unit, or a word of an enum (``value`` is its index)."""
    text = repr(float(value)).removesuffix(".0")
    suffix = "" if unit in ("count", "ratio", "bool", "enum") else f" {unit}"
    return Node("num", value=float(value), unit=unit, text=word or text + suffix)


def operand(name: str, spec: SignalSpec | None = None) -> Node:
    """Read a signal."""
    spec = spec or CATALOGUE[name]
    return Node("sig", name=name, scope=spec.scope, unit=spec.unit, text=name)


def output(name: str, unit: str, scope: str) -> Node:
    """Read ``detector.output``."""
    return Node("out", name=name, scope=scope, unit=unit, text=name)


def param(name: str, value: float, unit: str) -> Node:
    """Read a param."""
    return Node("param", name=name, value=value, unit=unit, text=f"params.{name}")


def call(op: str, *args: Node, unit: str = "") -> Node:
    """Write ``neg abs + - * / min max prev delta``."""
    texts = [a.text for a in args]
    if op == "neg":
        text = f"(-{texts[0]})"
    elif op in "+-*/":
        text = f"({texts[0]} {op} {texts[1]})"
    else:
        text = f"{op}({', '.join(texts)})"
    return Node(op, args, scope=narrowest(args), unit=unit or args[-1].unit, text=text)


def window(op: str, arg: Node, n: int) -> Node:
    """Write ``mean wmin wmax count`` over the last n turns or samples."""
    scope = narrowest([arg])
    unit = "count" if op == "count" else arg.unit
    text = f"{WORDS.get(op, op)}({arg.text}, {n} {'samples' if scope in ('replica', 'device') else 'turns'})"
    return Node(op, (arg,), n=n, scope=scope, unit=unit, text=text)


def compare(a: Node, relation: str, b: Node) -> Node:
    """Write a comparison."""
    return Node("cmp", (a, b), name=relation, scope=narrowest([a, b]), text=f"{a.text} {relation} {b.text}")


def truth(arg: Node) -> Node:
    """Write a bool that stands alone."""
    return Node("truth", (arg,), scope=arg.scope, text=arg.text)


def both(*args: Node) -> Node:
    """Write `and` (of guards too)."""
    return Node("and", args, scope=narrowest(args), text="(" + " and ".join(a.text for a in args) + ")")


def either(*args: Node) -> Node:
    """Write `or` (of guards too)."""
    return Node("or", args, scope=narrowest(args), text="(" + " or ".join(a.text for a in args) + ")")


def invert(arg: Node) -> Node:
    """Write `not`; of a guard's `any` it is written `none`."""
    if arg.op == "atleast" and arg.n == 1:
        text = "none" + arg.text.removeprefix("any")
    else:
        text = f"not {arg.text}" if arg.text.startswith("(") else f"not ({arg.text})"
    return Node("not", (arg,), scope=arg.scope, text=text)


def reference(rule_id: str, scope: str = "") -> Node:
    """Write ``rule:id``."""
    return Node("rule", name=rule_id, scope=scope, text=f"rule:{rule_id}")


def at_least(n: int, severity: str = "warning", tag: str = "") -> Node:
    """Write a guard atom: ``any`` when n is 1."""
    text = ("any" if n == 1 else f"at least {n}") + f" {severity}" + (f" tagged {tag}" if tag else "")
    return Node("atleast", n=n, value=float(SEVERITIES.index(severity)), name=tag, text=text)
