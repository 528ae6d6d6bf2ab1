"""What a decision saw: the condition of a rule worked out again on the numbers of its turn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import attrs

from stabilitykit.rules.kernel import arithmetic
from stabilitykit.rules.lower import OPCODES
from stabilitykit.rules.pack import Node, Rule
from stabilitykit.signals import SCOPES

__all__ = ["Comparison", "Evidence", "deciding", "nearest_change"]

NAN = math.nan
_HOLDS: dict[str, Callable[[float, float], bool]] = {
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
NEGATED = {">": "<=", "<=": ">", "<": ">=", ">=": "<", "==": "!=", "!=": "=="}
_REMEMBERS = frozenset(("prev", "delta", "mean", "wmin", "wmax", "count"))


@attrs.frozen
class Comparison:
    """One comparison of a condition, as it stood on the turn (negations worked in)."""

    left: Node
    op: str
    value: float
    threshold: float
    margin: float
    verdict: int


class Evidence:
    """Values of a rule's nodes on one turn, any of them replaced by another.

    Parameters
    ----------
    slots, node_slots, rule_slots
        Where signals and outputs, stateful sub-expressions and rule levels stand in ``x``.
    x
        The values of the turn.
    replaced
        Canonical text of a node to the value it should have instead.
    """

    def __init__(
        self,
        slots: Mapping[str, int],
        node_slots: Mapping[tuple[int, str], int],
        rule_slots: Mapping[str, int],
        x: Mapping[int, float],
        replaced: Mapping[str, float] | None = None,
    ) -> None:
        self._slots, self._node_slots, self._rule_slots, self._x = slots, node_slots, rule_slots, x
        self._replaced = replaced or {}

    def but(self, text: str, value: float) -> Evidence:
        """Give the same evidence with one node's value replaced."""
        return Evidence(self._slots, self._node_slots, self._rule_slots, self._x, {text: value})

    def value(self, node: Node) -> float:
        """Give a numeric node's value; NaN when unknown."""
        if node.text in self._replaced:
            return self._replaced[node.text]
        if node.op in ("num", "param"):
            return node.value
        if node.op in ("sig", "out"):
            return float(self._x[self._slots[node.name]])
        if node.op in _REMEMBERS:
            return float(self._x[self._node_slots[SCOPES.index(node.scope), node.text]])
        a = self.value(node.args[0])
        if node.op == "neg":
            return -a
        b = self.value(node.args[1]) if len(node.args) > 1 else 0.0
        return float(arithmetic(OPCODES[node.op], a, b))

    def verdict(self, node: Node) -> int:
        """Give 0 false, 1 unknown, 2 true of a condition."""
        if node.op == "not":
            return 2 - self.verdict(node.args[0])
        if node.op in ("and", "or"):
            both = [self.verdict(a) for a in node.args]
            return min(both) if node.op == "and" else max(both)
        return self.comparison(node, negate=False).verdict

    def comparison(self, node: Node, *, negate: bool) -> Comparison:
        """Look at one leaf of a condition."""
        if node.op == "rule":
            value = float(self._x[self._rule_slots[node.name]])
            return _compared(node, "==", value, 0.0 if negate else 1.0)
        if node.op == "truth":
            return _compared(node.args[0], "==", self.value(node.args[0]), 0.0 if negate else 1.0)
        left, right = node.args
        op = NEGATED[node.name] if negate else node.name
        return _compared(left, op, self.value(left), self.value(right))


def _compared(left: Node, op: str, value: float, threshold: float) -> Comparison:
    if math.isnan(value) or math.isnan(threshold):
        return Comparison(left, op, value, threshold, NAN, 1)
    margin = value - threshold if op in (">", ">=", "!=") else threshold - value
    holds = _HOLDS[op](value, threshold)
    return Comparison(left, op, value, threshold, abs(margin) if holds else -abs(margin), 2 if holds else 0)


def deciding(node: Node, evidence: Evidence, *, negate: bool = False) -> Comparison:
    """Find the comparison that decides: of several that must hold the one nearest to failing.

    In a disjunction it is the one that holds most clearly; of one that is not true, the one
    nearest to holding.
    """
    if node.op == "not":
        return deciding(node.args[0], evidence, negate=not negate)
    if node.op not in ("and", "or"):
        return evidence.comparison(node, negate=negate)
    both = [deciding(a, evidence, negate=negate) for a in node.args]
    if (node.op == "and") != negate:
        return min(both, key=lambda k: (k.verdict, _relative(k)))
    return max(both, key=lambda k: (k.verdict, _relative(k)))


def _relative(found: Comparison) -> float:
    if math.isnan(found.margin):
        return 0.0
    return found.margin / max(abs(found.threshold), abs(found.value), 1e-300)


def operands(node: Node) -> Iterator[Node]:
    """Give the signals, outputs and stateful sub-expressions that a condition compares."""
    if node.op in ("sig", "out") or node.op in _REMEMBERS:
        yield node
        return
    for a in node.args:
        yield from operands(a)


def nearest_change(rule: Rule, evidence: Evidence) -> tuple[Node, str, float] | None:
    """Find the smallest change of one operand after which the condition is not true.

    Returns
    -------
    (operand, op, value)
        The condition fails once ``operand op value``; None when no single operand can do it.
        A signal is preferred to what is derived from it.
    """
    if evidence.verdict(rule.when) != 2:
        return None
    best: tuple[int, float, Node, str, float] | None = None
    for node in dict.fromkeys(operands(rule.when)):
        now = evidence.value(node)
        if math.isnan(now):
            continue
        for candidate in _candidates(rule.when, node, evidence):
            op = _turning(rule, node, now, candidate, evidence)
            far = abs(candidate - now) / max(abs(now), 1e-300)
            found = (0 if node.op == "sig" else 1, far, node, op, candidate)
            if op and (best is None or found[:2] < best[:2]):
                best = found
    return None if best is None else best[2:]


def _turning(rule: Rule, node: Node, now: float, at: float, evidence: Evidence) -> str:
    """Say on which side of a candidate the condition fails: at it, just below, just above ("": nowhere)."""
    beyond = "<=" if at < now else ">="
    for value, op in ((at, beyond), (math.nextafter(at, -math.inf), "<"), (math.nextafter(at, math.inf), ">")):
        if value != now and evidence.but(node.text, value).verdict(rule.when) == 0:
            return op
    return ""


def _candidates(condition: Node, operand: Node, evidence: Evidence) -> Iterator[float]:
    """Give the values of an operand at which some comparison of the condition turns."""
    for node in _comparisons(condition):
        if node.op == "truth":
            if node.args[0].text == operand.text:
                yield from (0.0, 1.0)
            continue
        left, right = node.args
        # Sides are linear in most rules: two points give the crossing, and every candidate is checked.
        at = [evidence.but(operand.text, v) for v in (0.0, 1.0)]
        gap = [e.value(left) - e.value(right) for e in at]
        slope = gap[1] - gap[0]
        if math.isfinite(slope) and slope != 0.0:
            crossing = -gap[0] / slope
            exact = right if left.text == operand.text else left if right.text == operand.text else None
            yield evidence.value(exact) if exact is not None else crossing


def _comparisons(node: Node) -> Iterator[Node]:
    if node.op in ("cmp", "truth"):
        yield node
    elif node.op in ("and", "or", "not"):
        for a in node.args:
            yield from _comparisons(a)
