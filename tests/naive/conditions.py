"""Conditions, evaluated by walking the tree: three-valued, nothing short-circuited."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from stabilitykit.rules.pack import Node
from tests.naive.values import finite

__all__ = ["MEMORY_OPS", "F", "Frame", "T", "U", "Wider", "nodes"]

T, U, F = 2, 1, 0
MEMORY_OPS = frozenset({"prev", "delta", "mean", "wmin", "wmax", "count"})

ARITHMETIC: dict[str, Callable[..., float | None]] = {
    "neg": lambda a: finite(-a),
    "abs": lambda a: abs(a),
    "+": lambda a, b: finite(a + b),
    "-": lambda a, b: finite(a - b),
    "*": lambda a, b: finite(a * b),
    "/": lambda a, b: None if b == 0.0 else finite(a / b),
    "min": lambda a, b: a if a <= b else b,
    "max": lambda a, b: a if a >= b else b,
}
COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def nodes(node: Node) -> Iterator[Node]:
    """Walk a tree, children first."""
    for child in node.args:
        yield from nodes(child)
    yield node


@attrs.define
class Wider:
    """What a turn sees of a wider scope: the values of its last sample."""

    values: Mapping[str, float | None]
    expired: bool


@attrs.define
class Frame:
    """Everything the conditions of one scope can read on one turn or sample.

    Parameters
    ----------
    scope
        Whose memory moves.
    histories
        Canonical text of a sub-expression to its last values, oldest first (changed in place).
    signals, outputs, levels
        Value by signal, by ``detector.output``; T, U or F by rule id.
    wider
        Wider scopes by name.
    moved
        Values of the sub-expressions with memory that moved already on this turn.
    """

    scope: str
    histories: dict[str, list[Any]]
    signals: Mapping[str, Any]
    outputs: Mapping[str, float | None]
    levels: dict[str, int]
    wider: Mapping[str, Wider]
    moved: dict[str, float | None] = attrs.field(factory=dict)

    def number(self, node: Node) -> float | None:
        """Evaluate a numeric node; None is unknown."""
        op = node.op
        if op == "sig":
            return self.signals.get(node.name)
        if op == "out":
            return self.outputs.get(node.name)
        if op in ("num", "param"):
            return node.value
        if op in MEMORY_OPS:
            return self.remembered(node)
        values = [self.number(a) for a in node.args]
        if None in values:
            return None
        return ARITHMETIC[op](*values)

    def verdict(self, node: Node) -> int:
        """Evaluate a condition: T, U or F."""
        op = node.op
        if op == "cmp":
            a, b = self.number(node.args[0]), self.number(node.args[1])
            if a is None or b is None:
                return U
            return T if COMPARE[node.name](a, b) else F
        if op == "and":
            return min([self.verdict(a) for a in node.args])
        if op == "or":
            return max([self.verdict(a) for a in node.args])
        if op == "not":
            return T - self.verdict(node.args[0])
        if op == "truth":
            value = self.number(node.args[0])
            return U if value is None else T if value != 0.0 else F
        if op == "rule":
            return self.levels[node.name]
        raise AssertionError(f"no condition: {op}")

    def remembered(self, node: Node) -> float | None:
        """Give a sub-expression with memory: it moves once a turn in its own scope, and is read in others."""
        if node.scope not in ("", self.scope):
            sample = self.wider[node.scope]
            if sample.expired and any(n.op == "sig" for n in nodes(node)):
                return None
            return sample.values.get(node.text)
        if node.text not in self.moved:
            self.moved[node.text] = self.move(node, self.histories.setdefault(node.text, []))
        return self.moved[node.text]

    def move(self, node: Node, history: list[Any]) -> float | None:
        """Take this turn's value into the memory and give the result."""
        if node.op == "count":
            return move_count(self.verdict(node.args[0]), node.n, history)
        value = self.number(node.args[0])
        if node.op in ("prev", "delta"):
            before = history[-1] if history else None
            history[:] = [value]
            if node.op == "prev":
                return before
            return None if value is None or before is None else finite(value - before)
        history.append(value)
        del history[: -node.n]
        known = [v for v in history if v is not None]
        if value is None or len(known) < (node.n + 1) // 2:
            return None
        if node.op == "wmin":
            return min(known)
        return max(known) if node.op == "wmax" else mean(known)


def move_count(verdict: int, n: int, history: list[int]) -> float | None:
    """Move ``count(c, n turns)``; turns before the first are not in the history and count as F."""
    history.append(verdict)
    del history[:-n]
    if verdict == U or history.count(U) > n // 2:
        return None
    return float(history.count(T))


def mean(known: list[float]) -> float | None:
    """Sum in order, oldest first (never compensated), then divide."""
    total = 0.0
    for value in known:
        total += value
    return finite(total / len(known))
