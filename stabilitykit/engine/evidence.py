"""What a decision saw: the condition of a rule worked out again on the numbers of its turn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from stabilitykit.rules.kernel import arithmetic
from stabilitykit.rules.lower import OPCODES
from stabilitykit.rules.pack import Node, Rule
from stabilitykit.signals import SCOPES, SignalSpec

__all__ = ["Change", "Comparison", "Evidence", "Known", "deciding", "nearest_change"]

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


_SMALLEST = 2.2250738585072014e-308
_NONE: frozenset[str] = frozenset()


@attrs.frozen
class Known:
    """What is known of a pack's names.

    Parameters
    ----------
    specs
        Signals by name.
    feeds
        A signal or output to the signals and outputs that are made of it.
    """

    specs: Mapping[str, SignalSpec]
    feeds: Mapping[str, frozenset[str]]


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
        A node and the value it should have instead.
    hidden
        Signals and outputs that would be others then: unknown.
    """

    def __init__(
        self,
        slots: Mapping[str, int],
        node_slots: Mapping[tuple[int, str], int],
        rule_slots: Mapping[str, int],
        x: Sequence[float],
        replaced: tuple[Node, float] | None = None,
        hidden: frozenset[str] = _NONE,
    ) -> None:
        self._slots, self._node_slots, self._rule_slots, self._x = slots, node_slots, rule_slots, x
        self._replaced, self._hidden = replaced, hidden

    def but(self, node: Node, value: float, hidden: frozenset[str] = _NONE) -> Evidence:
        """Give the same evidence with one node's value replaced; what follows from it is unknown."""
        return Evidence(self._slots, self._node_slots, self._rule_slots, self._x, (node, value), hidden)

    def _is_hidden(self, node: Node) -> bool:
        """Tell whether a node's value would be another, nobody knows which."""
        if self._replaced is None:
            return False
        if node.op in ("sig", "out"):
            return node.name in self._hidden
        if node.op == "rule":
            return True
        return any(a.text == self._replaced[0].text or self._is_hidden(a) for a in node.args)

    def value(self, node: Node) -> float:
        """Give a numeric node's value; NaN when unknown."""
        if self._replaced is not None and node.text == self._replaced[0].text:
            return self._replaced[1]
        if node.op in ("num", "param"):
            return node.value
        if node.op in ("sig", "out"):
            return NAN if self._is_hidden(node) else self._x[self._slots[node.name]]
        if node.op in _REMEMBERS:
            return NAN if self._is_hidden(node) else self._x[self._node_slots[SCOPES.index(node.scope), node.text]]
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
            value = NAN if self._is_hidden(node) else self._x[self._rule_slots[node.name]]
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
        return min(both, key=lambda k: (k.verdict, _relative(k, exact=math.inf)))
    return max(both, key=lambda k: (k.verdict, _relative(k, exact=0.0)))


def _relative(found: Comparison, exact: float) -> float:
    """Give the margin against the sizes compared; `exact` for yes or no, which a number explains better."""
    if math.isnan(found.margin):
        return 0.0
    if found.op in ("==", "!="):
        return exact if found.verdict == 2 else -exact
    return found.margin / max(abs(found.threshold), abs(found.value), 1e-300)


def operands(node: Node) -> Iterator[Node]:
    """Give the signals, outputs and stateful sub-expressions that a condition compares."""
    if node.op in ("sig", "out") or node.op in _REMEMBERS:
        yield node
        return
    for a in node.args:
        yield from operands(a)


@attrs.frozen
class Change:
    """What would have made a condition fail: ``operand op value``.

    ``tested`` is the value next to it at which the condition was seen to fail. ``held`` names the
    detectors that see the operand too: their outputs were taken as they stood on the turn.
    """

    operand: Node
    op: str
    value: float
    tested: float
    held: tuple[str, ...] = ()


def nearest_change(rule: Rule, evidence: Evidence, known: Known) -> Change | None:
    """Find the smallest change of one operand after which the condition is false.

    First choice is a signal with which it is certainly false; then one with which it is, as long
    as its detectors keep their outputs; then what is derived from signals. None when no single
    operand can do it.
    """
    if evidence.verdict(rule.when) != 2:
        return None
    best: tuple[tuple[int, float], Change] | None = None
    for node in dict.fromkeys(operands(rule.when)):
        now = evidence.value(node)
        if math.isnan(now):
            continue
        made = known.feeds.get(node.name, _NONE) if node.op == "sig" else _NONE
        for hidden in dict.fromkeys((made, frozenset(name for name in made if "." not in name))):
            for change in _changes(rule.when, node, now, evidence, known, hidden):
                held = () if hidden is made else _held(rule.when, made)
                far = abs(change.value - now) / max(abs(now), 1e-300)
                rank = (2 if node.op != "sig" else 1 if held else 0, far)
                if best is None or rank < best[0]:
                    best = (rank, attrs.evolve(change, held=held))
    return None if best is None else best[1]


def _held(condition: Node, made: frozenset[str]) -> tuple[str, ...]:
    names = [node.name for node in operands(condition) if node.op == "out" and node.name in made]
    return tuple(dict.fromkeys(name.partition(".")[0] for name in names))


def _changes(
    condition: Node, node: Node, now: float, evidence: Evidence, known: Known, hidden: frozenset[str]
) -> Iterator[Change]:
    """Give each change of an operand that makes the condition fail."""
    spec = known.specs.get(node.name) if node.op == "sig" else None
    lo, hi = (spec.lo, spec.hi) if spec is not None else (-math.inf, math.inf)

    def fails(value: float) -> bool:
        return value != now and lo <= value <= hi and evidence.but(node, value, hidden).verdict(condition) == 0

    if node.unit in ("bool", "enum"):
        count = len(spec.values) if spec is not None and spec.values else 2
        failing = [float(v) for v in range(count) if fails(v)]
        if len(failing) == count - 1 > 1:
            yield Change(node, "!=", now, failing[0])
        else:
            yield from (Change(node, "==", v, v) for v in failing)
        return
    for exact in _candidates(condition, node, evidence):
        for at in (float(f"{exact:.6g}"), exact):  # a number that people can read, where it is as good
            beyond = "<=" if at < now else ">="
            tested = ((at, beyond), (_beside(at, -math.inf), "<"), (_beside(at, math.inf), ">"))
            found = next((Change(node, op, at, value) for value, op in tested if fails(value)), None)
            if found is not None:
                yield found
                break


def _beside(at: float, towards: float) -> float:
    """Give the next value; subnormal ones count as 0."""
    value = math.nextafter(at, towards)
    return value if abs(value) >= _SMALLEST or value == 0.0 else math.copysign(_SMALLEST, towards)


def _candidates(condition: Node, operand: Node, evidence: Evidence) -> Iterator[float]:
    """Give the values of an operand at which some comparison of the condition turns."""
    for node in _comparisons(condition):
        if node.op == "truth":
            continue
        left, right = node.args
        # Sides are linear in most rules: two points give the crossing, and every candidate is checked.
        at = [evidence.but(operand, v) for v in (0.0, 1.0)]
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
