"""Checked conditions become term programs and clauses of atoms, scope by scope.

A *term* computes one number into a slot of the value vector; an *atom* is ``x[slot]*sign > c``;
a *clause* is a conjunction of atoms; a condition is a disjunction of clauses. Negation is pushed
into the atoms (three-valued logic allows De Morgan and distributivity, never the excluded
middle). A product of more than eight clauses is split through a hidden rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import attrs

from stabilitykit.rules.pack import Node, Rule
from stabilitykit.signals import SCOPES

__all__ = ["CONSTANTS", "Item", "Lowering", "Term", "slot_of"]

OPCODES = {name: code for code, name in enumerate("+ - * / min max abs cmp3 prev delta mean wmax wmin count".split())}
_NEGATED = {">": "<=", "<=": ">", "<": ">=", ">=": "<", "==": "!=", "!=": "=="}
_FLIPPED = {">": "<", "<": ">", ">=": "<=", "<=": ">=", "==": "==", "!=": "!="}
_SMALLEST_NORMAL = 2.2250738585072014e-308
_MAX_CLAUSES = 8
CONSTANTS = 3
"""Block number of literals, after the three scopes."""

Atom = tuple[int, float, float]
Clauses = list[list[Atom]]


def slot_of(block: int, index: int) -> int:
    """Encode a slot before the blocks have their final places."""
    return block << 20 | index


@attrs.frozen
class Term:
    """One instruction: ``x[dst] = op(x[a], x[b])`` with memory at ``mem`` over ``n`` turns."""

    stratum: int
    op: int
    dst: int
    a: int
    b: int = 0
    mem: int = 0
    n: int = 0


@attrs.frozen
class Item:
    """A rule, or a hidden rule (``rule`` is None), with its clauses and its result slot (-1: none)."""

    stratum: int
    clauses: Clauses
    out: int
    rule: Rule | None


@attrs.define
class ScopeProgram:
    """What one scope evaluates: terms, items, and the memory they need."""

    terms: list[Term] = attrs.field(factory=list)
    items: list[Item] = attrs.field(factory=list)
    f8: int = 0
    u8: int = 0
    memory: list[tuple[str, str, int, int]] = attrs.field(factory=list)
    """(name, "f8" or "u8", offset, length) of every sub-expression with memory."""
    remembering: list[int] = attrs.field(factory=list)
    """Slots of sub-expressions with memory that read a signal: they expire with it."""
    model_bound: list[tuple[str, int, int]] = attrs.field(factory=list)
    """Memory spans that restart when the model changes."""


class Lowering:
    """Lowers every rule of a pack; one instance per pack.

    Parameters
    ----------
    allocate
        Gives a fresh slot in block 0, 1, 2 (scopes) or ``CONSTANTS``.
    slots
        Slots of signals (``"itl_ms"``) and detector outputs (``"itl.is_over"``).
    model_bound
        Detector ids whose memory belongs to a model.
    referenced
        Rules that some ``rule:`` reads; the others need no slot.
    """

    def __init__(
        self,
        allocate: Callable[[int], int],
        slots: Mapping[str, int],
        model_bound: frozenset[str],
        referenced: frozenset[str],
    ) -> None:
        self._allocate = allocate
        self._named = slots
        self._model_bound = model_bound
        self._referenced = referenced
        self.scopes = tuple(ScopeProgram() for _ in SCOPES)
        self.constants: dict[float, int] = {}
        self.node_slots: dict[tuple[int, str], int] = {}
        """Slot of each stateful or derived sub-expression, by (scope, text)."""
        self.rule_slots: dict[str, int] = {}
        self._rule_stratum: dict[str, tuple[int, int]] = {}
        self._cache: dict[tuple[object, ...], tuple[int, int]] = {}

    def rule(self, rule: Rule) -> None:
        """Lower one rule; rules come in topological order of their references."""
        scope = SCOPES.index(rule.scope)
        clauses, stratum = self._clauses(rule.when, scope, negate=False)
        out = self._allocate(scope) if rule.id in self._referenced else -1
        self.rule_slots[rule.id] = out
        self._rule_stratum[rule.id] = (scope, stratum)
        self.scopes[scope].items.append(Item(stratum, clauses, out, rule))

    # -- numbers

    def _constant(self, value: float) -> int:
        if value not in self.constants:
            self.constants[value] = self._allocate(CONSTANTS)
        return self.constants[value]

    def _value(self, node: Node, scope: int) -> tuple[int, int]:
        """Give (slot, stratum in which it is ready) of a numeric node, seen from a scope."""
        if node.op in ("num", "param"):
            return self._constant(node.value), 0
        if node.op in ("sig", "out"):
            return self._named[node.name], 0
        home = scope
        if node.op in ("prev", "delta", "mean", "wmin", "wmax", "count"):
            home = SCOPES.index(node.scope)
        key = (home, node.text)
        if key not in self._cache:
            self._cache[key] = self._term(node, home)
            self.node_slots[key] = self._cache[key][0]
        slot, stratum = self._cache[key]
        return slot, stratum if home == scope else 0

    def _term(self, node: Node, scope: int) -> tuple[int, int]:
        program = self.scopes[scope]
        if node.op == "count":
            hidden, stratum = self._hidden(node.args[0], scope)
            return self._remember(node, scope, Term(stratum + 1, OPCODES["count"], 0, hidden, n=node.n))
        if node.op == "neg":
            a, stratum = self._value(node.args[0], scope)
            term = Term(stratum, OPCODES["*"], self._allocate(scope), a, self._constant(-1.0))
        elif node.op == "abs":
            a, stratum = self._value(node.args[0], scope)
            term = Term(stratum, OPCODES["abs"], self._allocate(scope), a)
        elif node.op in ("+", "-", "*", "/", "min", "max"):
            a, left = self._value(node.args[0], scope)
            b, right = self._value(node.args[1], scope)
            term = Term(max(left, right), OPCODES[node.op], self._allocate(scope), a, b)
        else:
            a, stratum = self._value(node.args[0], scope)
            return self._remember(node, scope, Term(stratum, OPCODES[node.op], 0, a, n=node.n))
        program.terms.append(term)
        return term.dst, term.stratum

    def _remember(self, node: Node, scope: int, term: Term) -> tuple[int, int]:
        program = self.scopes[scope]
        kind, size = {"count": ("u8", 2), "prev": ("f8", 1), "delta": ("f8", 1)}.get(node.op, ("f8", node.n))
        at = program.u8 if kind == "u8" else program.f8
        if kind == "u8":
            program.u8 += size
        else:
            program.f8 += size
        dst = self._allocate(scope)
        program.terms.append(attrs.evolve(term, dst=dst, mem=at))
        program.memory.append((f"term:{node.text}", kind, at, size))
        if _reads_signal(node):
            program.remembering.append(dst)
        if self._reads_model(node):
            program.model_bound.append((kind, at, size))
        return dst, term.stratum

    def _reads_model(self, node: Node) -> bool:
        if node.op == "out" and node.name.split(".")[0] in self._model_bound:
            return True
        return any(self._reads_model(a) for a in node.args)

    # -- conditions

    def _hidden(self, node: Node, scope: int) -> tuple[int, int]:
        key = ("hidden", scope, node.text)
        if key not in self._cache:
            clauses, stratum = self._clauses(node, scope, negate=False)
            out = self._allocate(scope)
            self.scopes[scope].items.append(Item(stratum, clauses, out, None))
            self._cache[key] = (out, stratum)
        return self._cache[key]

    def _clauses(self, node: Node, scope: int, *, negate: bool) -> tuple[Clauses, int]:
        if node.op == "not":
            return self._clauses(node.args[0], scope, negate=not negate)
        if node.op == "rule":
            home, stratum = self._rule_stratum[node.name]
            return _flag(self.rule_slots[node.name], negate), stratum + 1 if home == scope else 0
        if node.op == "truth":
            slot, stratum = self._value(node.args[0], scope)
            return _flag(slot, negate), stratum
        if node.op == "cmp":
            return self._comparison(node, scope, _NEGATED[node.name] if negate else node.name)
        left, s_left = self._clauses(node.args[0], scope, negate=negate)
        right, s_right = self._clauses(node.args[1], scope, negate=negate)
        if (node.op == "or") != negate:
            return left + right, max(s_left, s_right)
        if len(left) * len(right) <= _MAX_CLAUSES:
            return [a + b for a in left for b in right], max(s_left, s_right)
        big, other, s_other = (0, right, s_right) if len(left) >= len(right) else (1, left, s_left)
        slot, stratum = self._hidden(node.args[big], scope)
        (flag,) = _flag(slot, negate)
        return [clause + flag for clause in other], max(stratum + 1, s_other)

    def _comparison(self, node: Node, scope: int, op: str) -> tuple[Clauses, int]:
        a, b = node.args
        if a.op in ("num", "param") and b.op not in ("num", "param"):
            a, b, op = b, a, _FLIPPED[op]
        if b.op in ("num", "param") and a.op not in ("num", "param") and op not in ("==", "!="):
            slot, stratum = self._value(a, scope)
            return [[_against(slot, op, b.value)]], stratum
        (left, s_left), (right, s_right) = self._value(a, scope), self._value(b, scope)
        key = ("cmp3", scope, left, right)
        if key not in self._cache:
            term = Term(max(s_left, s_right), OPCODES["cmp3"], self._allocate(scope), left, right)
            self.scopes[scope].terms.append(term)
            self._cache[key] = (term.dst, term.stratum)
        slot, stratum = self._cache[key]
        return _ORDERING[op](slot), stratum


def _reads_signal(node: Node) -> bool:
    return node.op == "sig" or any(_reads_signal(a) for a in node.args)


def _flag(slot: int, negate: bool) -> Clauses:
    return [[(slot, -1.0, -0.5)]] if negate else [[(slot, 1.0, 0.5)]]


def _below(c: float) -> float:
    # Subnormals never occur in values, so the next number below zero is the smallest normal.
    return -_SMALLEST_NORMAL if c == 0 else math.nextafter(c, -math.inf)


def _against(slot: int, op: str, c: float) -> Atom:
    if op == ">":
        return (slot, 1.0, c)
    if op == ">=":
        return (slot, 1.0, _below(c))
    return (slot, -1.0, -c) if op == "<" else (slot, -1.0, _below(-c))


# A cmp3 term is -1, 0 or 1.
_ORDERING: dict[str, Callable[[int], Clauses]] = {
    ">": lambda s: [[(s, 1.0, 0.5)]],
    ">=": lambda s: [[(s, 1.0, -0.5)]],
    "<": lambda s: [[(s, -1.0, 0.5)]],
    "<=": lambda s: [[(s, -1.0, -0.5)]],
    "==": lambda s: [[(s, 1.0, -0.5), (s, -1.0, -0.5)]],
    "!=": lambda s: [[(s, 1.0, 0.5)], [(s, -1.0, 0.5)]],
}
