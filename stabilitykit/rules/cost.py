"""What a pack may cost, checked before anything is allocated: SK602, SK603, SK604."""

from __future__ import annotations

from collections.abc import Mapping

from stabilitykit.errors import PackError, Problem
from stabilitykit.rules.files.locate import Findings, Place
from stabilitykit.rules.files.shape import Item
from stabilitykit.rules.pack import Node, Pack, Rule

__all__ = [
    "MAX_ATOMS",
    "MAX_CLAUSES",
    "MAX_GUARD_CLAUSES",
    "MAX_GUARD_TESTS",
    "MAX_ITEMS",
    "MAX_LEVELS",
    "MAX_NODES",
    "MAX_TERMS",
    "Cost",
    "guard_clauses",
    "levels",
    "row_too_large",
    "too_many",
]

MAX_ITEMS = 2_000
MAX_ATOMS = 8_192
MAX_TERMS = 2_048
MAX_NODES = 32_768
MAX_LEVELS = 16
MAX_GUARD_CLAUSES = 256
MAX_CLAUSES = 4_096
MAX_GUARD_TESTS = 16_384

_ATOMS = frozenset(("cmp", "truth", "rule"))
_LEAVES = frozenset(("sig", "out", "num", "param"))
_LOGIC = frozenset(("and", "or", "not"))


def too_many(findings: Findings, sections: Mapping[str, Mapping[str, Item]], place: Place) -> bool:
    """Report sections with more items than any pack needs; true when there is one."""
    crowded = [(name, len(items)) for name, items in sections.items() if len(items) > MAX_ITEMS]
    for name, count in crowded:
        findings.add(place, "SK602", f"{count:,} {name}; {MAX_ITEMS:,} are allowed")
    return bool(crowded)


class Cost:
    """Counts what the conditions of a pack cost, rule by rule; equal terms count once.

    Parameters
    ----------
    place
        Where to report a limit of the whole set.
    """

    def __init__(self, findings: Findings, place: Place) -> None:
        self.findings, self.place = findings, place
        self.nodes = self.atoms = 0
        self.terms: set[tuple[str, str]] = set()
        self.levels: dict[str, int] = {}
        self.is_too_deep = False

    def count(self, rule: Rule) -> bool:
        """Count a rule; false when it was one too many: then looking further helps nobody."""
        stack = [rule.when]
        for node in stack:
            if node.op in _LEAVES:
                continue
            if node.op in _ATOMS:
                self.atoms += 1
            elif node.op not in _LOGIC:
                self.terms.add((node.scope, node.text))
            stack += node.args
        self.nodes += len(stack)
        for count, limit, what in (
            (self.atoms, MAX_ATOMS, "comparisons"),
            (len(self.terms), MAX_TERMS, "computed terms"),
            (self.nodes, MAX_NODES, "parts"),
        ):
            if count > limit:
                self.findings.add(self.place, "SK602", f"the conditions hold more than {limit:,} {what}")
                return False
        return True

    def check_levels(self, rule: Rule, item: Item) -> None:
        """Check what a rule waits for, after the rules it names."""
        text = rule.when.text
        self.levels[rule.id] = levels(rule.when, self.levels) if "rule:" in text or "count(" in text else 0
        # Only the first rule over the limit: those behind it would all repeat it.
        if self.levels[rule.id] > MAX_LEVELS and not self.is_too_deep:
            self.is_too_deep = True
            message = f"`{rule.id}` waits for more than {MAX_LEVELS} levels of `rule:` and `count()`"
            self.findings.add(item.at("when"), "SK603", message)


def levels(node: Node, of_rules: Mapping[str, int]) -> int:
    """Count the levels of ``rule:`` and ``count()`` that a condition waits for.

    Parameters
    ----------
    of_rules
        Levels of every rule it may name.
    """
    below = max((levels(a, of_rules) for a in node.args), default=0)
    if node.op == "rule":
        return of_rules.get(node.name, 0) + 1
    return below + 1 if node.op == "count" else below


def guard_clauses(node: Node, *, negate: bool = False) -> tuple[int, int]:
    """Count what a guard unfolds into, as the machine's tables hold it, without unfolding it.

    Returns
    -------
    tuple[int, int]
        Clauses (their ``or`` is the guard), and the tests of rules in all of them.
    """
    if node.op == "not":
        return guard_clauses(node.args[0], negate=not negate)
    if node.op not in ("and", "or"):
        return 1, 1
    (left, left_tests), (right, right_tests) = (guard_clauses(a, negate=negate) for a in node.args)
    if (node.op == "or") != negate:
        return left + right, left_tests + right_tests
    return left * right, left_tests * right + right_tests * left


def row_too_large(pack: Pack, row_bytes: int, limit: int) -> PackError:
    """Make the error of a pack whose session row does not fit (SK604); the table compiler raises it.

    Parameters
    ----------
    row_bytes, limit
        What a session would take, and what it may take, in bytes.
    """
    file = pack.files[-1] if pack.files else pack.name
    message = f"a session of pack `{pack.name}` takes a row of {row_bytes:,} bytes; {limit:,} are allowed"
    hint = "fewer or smaller detectors and windows, or a greater row limit"
    return PackError([Problem(file, 1, 1, "SK604", message, hint=hint)])
