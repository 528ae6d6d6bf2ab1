"""What a pack may cost, checked before anything is allocated: SK602, SK603, SK604."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stabilitykit.errors import PackError, Problem
from stabilitykit.rules.locate import Findings, Place
from stabilitykit.rules.pack import Node, Pack, Rule

__all__ = ["MAX_ATOMS", "MAX_LEVELS", "MAX_RULES", "MAX_TERMS", "check_cost", "levels", "row_too_large"]

MAX_RULES = 2_000
MAX_ATOMS = 8_192
MAX_TERMS = 2_048
MAX_LEVELS = 16

_ATOMS = frozenset(("cmp", "truth", "rule"))
_LEAVES = frozenset(("sig", "out", "num", "param"))
_LOGIC = frozenset(("and", "or", "not"))


def check_cost(findings: Findings, place: Place, rules: Sequence[tuple[Rule, Place]]) -> None:
    """Count comparisons and computed terms of all conditions; equal terms count once.

    Parameters
    ----------
    place
        Where to report a limit of the whole set.
    rules
        Checked rules with their places, in topological order.
    """
    atoms = 0
    terms: set[tuple[str, str]] = set()
    for rule, _ in rules:
        stack = [rule.when]
        for node in stack:
            if node.op in _LEAVES:
                continue
            if node.op in _ATOMS:
                atoms += 1
            elif node.op not in _LOGIC:
                terms.add((node.scope, node.text))
            stack += node.args
    if atoms > MAX_ATOMS:
        findings.add(place, "SK602", f"the conditions hold {atoms:,} comparisons; {MAX_ATOMS:,} are allowed")
    if len(terms) > MAX_TERMS:
        findings.add(place, "SK602", f"the conditions hold {len(terms):,} computed terms; {MAX_TERMS:,} are allowed")
    _check_levels(findings, rules)


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


def _check_levels(findings: Findings, rules: Sequence[tuple[Rule, Place]]) -> None:
    of_rules: dict[str, int] = {}
    for rule, place in rules:
        text = rule.when.text
        of_rules[rule.id] = levels(rule.when, of_rules) if "rule:" in text or "count(" in text else 0
        # Only the first rule over the limit: those behind it would all repeat it.
        if of_rules[rule.id] == MAX_LEVELS + 1:
            message = f"`{rule.id}` waits for more than {MAX_LEVELS} levels of `rule:` and `count()`"
            findings.add(place, "SK603", message)


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
