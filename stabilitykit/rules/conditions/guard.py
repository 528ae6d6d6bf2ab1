"""Guards of transitions: which rules must match, and for how long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from stabilitykit.rules.conditions.descent import Tree
from stabilitykit.rules.conditions.guard_syntax import parse_guard
from stabilitykit.rules.conditions.lexer import SyntaxProblem
from stabilitykit.rules.conditions.names import Problems
from stabilitykit.rules.conditions.terms import AND, ATOM, NOT, OR
from stabilitykit.rules.conditions.units import TURN_WORDS
from stabilitykit.rules.pack import SEVERITIES, Node, ParamValue

__all__ = ["MAX_FOR", "GuardCheck", "Ranked", "check_guard", "worst_severities"]

MAX_FOR = 255
_BINDING = {"or": OR, "and": AND, "not": NOT}


class Ranked(Protocol):
    """What a guard needs to know of a rule; `Rule` of a pack has it."""

    @property
    def severity(self) -> str:
        """One of info, warning, critical."""

    @property
    def tags(self) -> tuple[str, ...]:
        """Labels."""


class GuardCheck(NamedTuple):
    """A checked guard.

    Parameters
    ----------
    node
        None when anything is wrong; without the ``for``.
    for_turns
        Turns in a row on which it must be true; 1 when not said.
    problems, warnings
        Mistakes, and findings that are none: a range that no rule is in.
    """

    node: Node | None
    for_turns: int
    problems: list[SyntaxProblem]
    warnings: list[SyntaxProblem]


class _Checker:
    def __init__(self, rules: Mapping[str, Ranked], worst: Mapping[str, int], params: Mapping[str, ParamValue]) -> None:
        self.rules, self.worst, self.params = rules, worst, params
        self.problems = Problems([])
        self.warnings = Problems([])

    def node(self, tree: Tree) -> tuple[Node, int]:
        """Check a part of a guard: its node, and how strongly its text binds."""
        if tree.kind in ("or", "and"):
            binding = _BINDING[tree.kind]
            parts = [self.node(arg) for arg in tree.args]
            text = f" {tree.kind} ".join(_within(part, binding) for part in parts)
            return Node(tree.kind, tuple(part[0] for part in parts), text=text), binding
        if tree.kind == "not":
            return _negated(self.node(tree.args[0]))
        if tree.kind == "rule":
            if tree.name not in self.rules:
                message = f"unknown rule `{tree.name[:60]}`"
                self.problems.add("SK305", tree.offset, tree.end, message, near=(tree.name, self.rules))
            return Node("rule", name=tree.name, text=f"rule:{tree.name}"), ATOM
        return self._range(tree)

    def _range(self, tree: Tree) -> tuple[Node, int]:
        severity = tree.unit or "warning"
        rank = SEVERITIES.index(severity)
        tag = tree.args[0].name if tree.args else ""
        n = int(tree.name[:6])
        if n < 1:
            self.problems.add(
                "SK206", tree.offset, tree.end, "at least 0 is always true", "write `at least 1`, or `any`"
            )
        if self._known(tree, tag) and self.worst.get(tag, -1) < rank:
            what = f"{severity} or worse" + (f" tagged {tag}" if tag else "")
            self.warnings.add("SK506", tree.offset, tree.end, f"no rule is {what}")
        words = ["any" if n == 1 else f"at least {n}", severity, *(["tagged", tag] if tag else [])]
        node = Node("atleast", name=tag, value=float(rank), n=n, text=" ".join(words))
        return (node, ATOM) if tree.kind != "none" else _negated((node, ATOM))

    def _known(self, tree: Tree, tag: str) -> bool:
        if not tag or tag in self.worst:
            return True
        place = tree.args[0]
        near = (tag, [known for known in self.worst if known])
        self.problems.add("SK506", place.offset, place.end, f"no rule has the tag `{tag[:60]}`", near=near)
        return False

    def turns(self, tree: Tree) -> int:
        """Check the count behind ``for``, which is always in turns."""
        if tree.kind == "num":
            written, word = tree.name, TURN_WORDS[tree.unit]
        else:
            name = tree.name.partition(".")[2]
            param = self.params.get(name)
            if param is None:
                near = (name, self.params)
                self.problems.add("SK303", tree.offset, tree.end, f"unknown param `{name[:60]}`", near=near)
                return 1
            written, word = str(param.value).removesuffix(".0"), TURN_WORDS.get(param.unit, "")
        if word != "turns" or not written.isdigit():
            hint = "the machine always says `turns`: `3 turns`"
            self.problems.add("SK412", tree.offset, tree.end, "turns wanted", hint)
            return 1
        n = int(written[:6])
        if not 1 <= n <= MAX_FOR:
            self.problems.add("SK206", tree.offset, tree.end, f"`for` of {written[:20]} turns", f"1 to {MAX_FOR}")
            return 1
        return n


def _within(part: tuple[Node, int], binding: int) -> str:
    node, own = part
    return node.text if own >= binding else f"({node.text})"


def _negated(part: tuple[Node, int]) -> tuple[Node, int]:
    """Negate; not at least one is `none`."""
    inner = part[0]
    if inner.op == "atleast" and inner.n == 1:
        return Node("not", (inner,), text="none" + inner.text.removeprefix("any")), ATOM
    return Node("not", (inner,), text=f"not {_within(part, NOT)}"), NOT


def worst_severities(rules: Mapping[str, Ranked]) -> dict[str, int]:
    """Give the rank of the worst severity of each tag, and of all rules under ""."""
    worst: dict[str, int] = {}
    for rule in rules.values():
        rank = SEVERITIES.index(rule.severity)
        for tag in ("", *rule.tags):
            worst[tag] = max(rank, worst.get(tag, 0))
    return worst


def check_guard(
    text: str,
    rules: Mapping[str, Ranked],
    worst: Mapping[str, int],
    *,
    params: Mapping[str, ParamValue] | None = None,
) -> GuardCheck:
    """Check a guard.

    Parameters
    ----------
    rules
        The rules of the pack by id, without those that are disabled.
    worst
        What ``worst_severities`` says of them; a tag that is not in it has no rule.
    params
        For ``for params.x``.
    """
    try:
        tree = parse_guard(text)
    except SyntaxProblem as problem:
        return GuardCheck(None, 1, [problem], [])
    checker = _Checker(rules, worst, params or {})
    for_turns = 1
    if tree.kind == "for":
        tree, turns = tree.args
        for_turns = checker.turns(turns)
    node, _ = checker.node(tree)
    problems = sorted(checker.problems.found, key=lambda problem: problem.offset)
    return GuardCheck(None if problems else node, for_turns, problems, checker.warnings.found)
