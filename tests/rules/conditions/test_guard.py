"""Guards: ranges of rules, tags, `for`, canonical text."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.rules.conditions.guard import check_guard, worst_severities
from stabilitykit.rules.pack import Node, ParamValue


@attrs.frozen
class _Rule:
    severity: str
    tags: tuple[str, ...] = ()


RULES = {
    "slow": _Rule("warning", ("stable", "latency")),
    "full": _Rule("warning", ("kv-cache",)),
    "note": _Rule("info", ("notes",)),
}
PARAMS = {
    "n": ParamValue("n", 4.0, "turns"),
    "s": ParamValue("s", 4.0, "samples"),
    "ms": ParamValue("ms", 4.0, "ms"),
    "zero": ParamValue("zero", 0.0, "turns"),
}


def check(text):
    """Check a guard over the rules above."""
    return check_guard(text, RULES, worst_severities(RULES), params=PARAMS)


def sketch(node: Node) -> str:
    """Write a guard as a prefix expression."""
    if node.op == "atleast":
        return f"{node.n}:{node.value:g}:{node.name}"
    return f"{node.op}({', '.join(map(sketch, node.args))})" if node.args else node.text


@pytest.mark.parametrize(
    ("text", "tree", "canonical", "turns"),
    [
        ("any", "1:1:", "any warning", 1),
        ("any critical", "1:2:", "any critical", 1),
        ("any info", "1:0:", "any info", 1),
        ("none for 3 turns", "not(1:1:)", "none warning", 3),
        ("none for params.n", "not(1:1:)", "none warning", 4),
        ("at least 2 info", "2:0:", "at least 2 info", 1),
        ("at least 1 warning", "1:1:", "any warning", 1),
        ("any tagged kv-cache", "1:1:kv-cache", "any warning tagged kv-cache", 1),
        ("rule:slow", "rule:slow", "rule:slow", 1),
        ("not any", "not(1:1:)", "none warning", 1),
        ("not none", "not(not(1:1:))", "not none warning", 1),
        ("not at least 2", "not(2:1:)", "not at least 2 warning", 1),
        ("not (any and rule:slow)", "not(and(1:1:, rule:slow))", "not (any warning and rule:slow)", 1),
        (
            "any or none and rule:slow",
            "or(1:1:, and(not(1:1:), rule:slow))",
            "any warning or none warning and rule:slow",
            1,
        ),
        (
            "(any or none) and rule:slow for 1 turn",
            "and(or(1:1:, not(1:1:)), rule:slow)",
            "(any warning or none warning) and rule:slow",
            1,
        ),
        ("any for 255 turns", "1:1:", "any warning", 255),
    ],
)
def test_guards(text, tree, canonical, turns):
    """A guard becomes a node, its canonical text and the turns of its `for`."""
    found = check(text)
    assert found.problems == []
    assert (sketch(found.node), found.node.text, found.for_turns) == (tree, canonical, turns)
    assert check(canonical).node == found.node


@pytest.mark.parametrize(
    ("text", "code", "col", "width"),
    [
        ("rule:slw", "SK305", 1, 8),
        ("any tagged kv-cach", "SK506", 12, 7),
        ("at least 0", "SK206", 1, 10),
        ("none for 0 turns", "SK206", 10, 7),
        ("none for 256 turns", "SK206", 10, 9),
        ("none for params.zero", "SK206", 10, 11),
        ("none for 2", "SK412", 10, 1),
        ("none for 2 samples", "SK412", 10, 9),
        ("none for params.s", "SK412", 10, 8),
        ("none for params.ms", "SK412", 10, 9),
        ("none for params.k", "SK303", 10, 8),
        ("any critcal", "SK401", 5, 7),
    ],
)
def test_codes(text, code, col, width):
    """Every mistake has its code and place."""
    found = check(text)
    assert found.node is None
    assert [(p.code, p.offset + 1, p.width) for p in found.problems] == [(code, col, width)]


def test_all_mistakes_of_a_guard():
    """All are reported, by position."""
    found = check("rule:slw or any tagged nope for 0 turns")
    assert [p.code for p in found.problems] == ["SK305", "SK506", "SK206"]
    assert found.problems[0].hint == "did you mean `slow`?"


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ("any critical", True),
        ("none critical", True),
        ("any warning tagged notes", True),
        ("any info tagged notes", False),
        ("any", False),
        ("at least 2 info", False),
    ],
)
def test_empty_ranges(text, warned):
    """A range that no rule is in is no mistake, but a warning."""
    found = check(text)
    assert found.problems == []
    assert [w.code for w in found.warnings] == (["SK506"] if warned else [])


def test_no_params_needed():
    """Params are optional."""
    assert check_guard("any", RULES, worst_severities(RULES)).for_turns == 1


_TEXTS = st.recursive(
    st.sampled_from(["any", "none critical", "at least 2 info", "rule:slow", "any tagged kv-cache", "not any"]),
    lambda inner: st.one_of(
        st.builds("{} and {}".format, inner, inner),
        st.builds("{} or {}".format, inner, inner),
        st.builds("not ({})".format, inner),
        st.builds("({})".format, inner),
    ),
    max_leaves=8,
)


@given(_TEXTS)
def test_text_means_the_same_again(text):
    """The canonical text of a guard gives the same text again."""
    found = check(text)
    if found.node is not None:
        assert check(found.node.text).node.text == found.node.text
