"""Lowering: a condition and its clauses have the same verdict, and big conditions are split."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from stabilitykit.rules.conditions.condition import check_condition
from stabilitykit.rules.lower import CONSTANTS, OPCODES, Lowering, slot_of
from stabilitykit.rules.pack import Node, Rule
from tests.rules.vocabulary import NAMES

SIGNALS = ("sent_tokens", "input_tokens", "output_tokens", "cached_tokens")


def node_of(text: str) -> Node:
    """Check a sound condition."""
    node, problems = check_condition(text, NAMES)
    assert not problems, [str(p) for p in problems]
    assert node is not None
    return node


class Lowered:
    """One or more conditions lowered, with a plain evaluator of the result."""

    def __init__(self, *texts: str, referenced: frozenset[str] = frozenset()) -> None:
        self.sizes = [len(SIGNALS), 0, 0, 0]
        slots = {name: slot_of(0, k) for k, name in enumerate(SIGNALS)}
        self.lowering = Lowering(self.allocate, slots, frozenset(), referenced)
        for k, text in enumerate(texts):
            self.lowering.rule(Rule(id=f"r{k}", when=node_of(text), source=text, scope="session"))
        self.program = self.lowering.scopes[0]

    def allocate(self, block: int) -> int:
        """Hand out the next slot of a block."""
        self.sizes[block] += 1
        return slot_of(block, self.sizes[block] - 1)

    def verdict(self, values: tuple[float, ...]) -> int:
        """Evaluate strata in order; gives the verdict of the last rule."""
        x: dict[int, float] = {slot_of(0, k): v for k, v in enumerate(values)}
        x |= {slot: value for value, slot in self.lowering.constants.items()}
        found = 0
        last = max([t.stratum for t in self.program.terms] + [i.stratum for i in self.program.items])
        for stratum in range(last + 1):
            for term in (t for t in self.program.terms if t.stratum == stratum):
                assert term.op == OPCODES["cmp3"]
                a, b = x[term.a], x[term.b]
                x[term.dst] = math.nan if math.isnan(a) or math.isnan(b) else float((a > b) - (a < b))
            for item in (i for i in self.program.items if i.stratum == stratum):
                level = max(min(atom(x[s] * sign, bound) for s, sign, bound in clause) for clause in item.clauses)
                if item.out >= 0:
                    x[item.out] = (0.0, math.nan, 1.0)[level]
                if item.rule is not None:
                    found = level
        return found


def atom(value: float, bound: float) -> int:
    """Give 0, 1 or 2."""
    return 1 if math.isnan(value) else 2 if value > bound else 0


def wanted(node: Node, x: dict[str, float]) -> int:
    """Evaluate a checked condition directly."""
    if node.op in ("and", "or"):
        both = [wanted(a, x) for a in node.args]
        return min(both) if node.op == "and" else max(both)
    if node.op == "not":
        return 2 - wanted(node.args[0], x)
    a, b = (x[n.name] if n.op == "sig" else n.value for n in node.args)
    if math.isnan(a) or math.isnan(b):
        return 1
    return 2 * {">": a > b, ">=": a >= b, "<": a < b, "<=": a <= b, "==": a == b, "!=": a != b}[node.name]


CONDITIONS = [
    "sent_tokens > 2 tokens",
    "sent_tokens >= 2 tokens",
    "2 tokens >= sent_tokens",
    "sent_tokens <= 0 tokens",
    "sent_tokens == 2 tokens",
    "sent_tokens != 2 tokens",
    "sent_tokens > input_tokens",
    "sent_tokens <= input_tokens",
    "not (sent_tokens > 1 tokens and input_tokens < 2 tokens)",
    "not (sent_tokens > 1 tokens or not input_tokens < 2 tokens)",
    "sent_tokens > 1 tokens and (input_tokens > 1 tokens or output_tokens > 1 tokens) or not cached_tokens >= 2 tokens",
    "sent_tokens != input_tokens and not output_tokens == cached_tokens",
]


@pytest.mark.capability("issue 2 §3: clauses of the tables mean what the condition means, three-valued (Kleene)")
@pytest.mark.parametrize("text", CONDITIONS)
def test_clauses_mean_what_the_condition_means(text: str) -> None:
    """Every combination of values around the bounds, unknown among them."""
    lowered, node = Lowered(text), node_of(text)
    for values in itertools.product((0.0, 1.0, 2.0, 3.0, math.nan), repeat=4):
        assert lowered.verdict(values) == wanted(node, dict(zip(SIGNALS, values, strict=True))), values


def test_a_big_product_is_split() -> None:
    """Sixteen clauses become a hidden rule and no more than eight; the verdict stays."""
    text = " and ".join(f"({a} > 1 tokens or {a} < {k} tokens)" for k, a in enumerate(SIGNALS, 1))
    lowered, node = Lowered(text), node_of(text)
    assert [i.rule is None for i in lowered.program.items] == [True, False]
    assert all(len(i.clauses) <= 8 for i in lowered.program.items)
    assert [i.stratum for i in lowered.program.items] == [0, 1]
    for values in itertools.product((0.5, 1.0, 2.5, math.nan), repeat=4):
        assert lowered.verdict(values) == wanted(node, dict(zip(SIGNALS, values, strict=True))), values


def ops(lowered: Lowered) -> list[str]:
    """Name the terms in order."""
    names = {code: name for name, code in OPCODES.items()}
    return [names[t.op] for t in lowered.program.terms]


def test_equal_expressions_share_one_memory() -> None:
    """Two rules that read the same window have it once."""
    lowered = Lowered(
        "mean(input_tokens, 5 turns) > 3 tokens",
        "mean(input_tokens, 5 turns) > 9 tokens",
        "mean(input_tokens, 6 turns) > 3 tokens",
    )
    assert ops(lowered) == ["mean", "mean"]
    assert lowered.program.f8 == 11
    assert [m[1:] for m in lowered.program.memory] == [("f8", 0, 5), ("f8", 5, 6)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prev(input_tokens) > 3 tokens", (1, 0)),
        ("delta(input_tokens) > 3 tokens", (1, 0)),
        ("max(input_tokens, 7 turns) > 3 tokens", (7, 0)),
        ("count(input_tokens > 3 tokens, 9 turns) >= 2", (0, 2)),
        ("input_tokens > 3 tokens", (0, 0)),
    ],
)
def test_memory_of_sub_expressions(text: str, expected: tuple[int, int]) -> None:
    """A float for prev and delta, n for a window, two words for a count."""
    program = Lowered(text).program
    assert (program.f8, program.u8) == expected


def test_a_count_waits_for_its_condition() -> None:
    """The hidden rule of a count is in the stratum before the term that reads it."""
    lowered = Lowered("count(input_tokens > 3 tokens, 9 turns) >= 2")
    (term,) = lowered.program.terms
    hidden, rule = lowered.program.items
    assert hidden.rule is None
    assert (hidden.stratum, term.stratum, rule.stratum) == (0, 1, 1)


def test_literals_have_one_slot_each() -> None:
    """A literal that is part of arithmetic stands behind the scopes, once."""
    lowered = Lowered("input_tokens * 2 > sent_tokens", "output_tokens * 2 > sent_tokens")
    assert list(lowered.lowering.constants) == [2.0]
    assert lowered.lowering.constants[2.0] >> 20 == CONSTANTS


def test_names_of_values_for_explanations() -> None:
    """Every derived value can be found by scope and text."""
    found: Any = Lowered("prev(input_tokens) + output_tokens > 3 tokens").lowering.node_slots
    assert {text for _, text in found} == {"prev(input_tokens)", "prev(input_tokens) + output_tokens"}
