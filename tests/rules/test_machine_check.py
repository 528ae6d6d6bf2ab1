from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.rules.conditions.guard import check_guard, worst_severities
from stabilitykit.rules.machine_check import implies
from stabilitykit.rules.pack import SEVERITIES, Node, Rule
from tests.rules.packs import expect_problems, load

HEAD = (
    "stabilitykit: 1\npack: test\nrules:\n"
    "  - {rule: hot, when: itl_ms > 80 ms, severity: critical, tags: [speed]}\n"
    "  - {rule: warm, when: itl_ms > 40 ms, tags: [speed]}\n"
    "machine:\n  initial: up\n  states: [{state: up}, {state: odd}, {state: down}]\n  transitions:\n"
    "    - {from: odd, to: up, after: 3 turns}\n    - {from: down, to: odd, after: 3 turns}\n"
)


@pytest.mark.parametrize(
    ("early", "late"),
    [
        ("from: [up], to: odd, when: any warning", "from: up, to: down, when: any critical"),
        ("from: [up, odd], to: down, when: any", "from: up, to: odd, when: any tagged speed"),
        ("from: up, to: odd, when: any warning", "from: up, to: down, when: 'rule:warm'"),
        ("from: up, to: odd, when: any", "from: up, to: down, when: at least 2"),
        ("from: up, to: odd, when: any", "from: up, to: down, when: any and none critical"),
        ("from: up, to: odd, when: any or none", "from: up, to: down, when: any critical"),
        ("from: up, to: odd, when: none for 2 turns", "from: up, to: down, when: none for 3 turns"),
        ("from: up, to: odd, after: 3 turns", "from: up, to: down, after: 4 turns"),
        ("from: up, to: odd, after: 3 turns", "from: up, to: down, when: any for 3 turns"),
        ("from: up, to: odd, after: 1 turns", "from: up, to: down, when: any"),
        ("from: up, to: odd, when: any, after: 2 turns", "from: up, to: down, when: any critical, after: 2 turns"),
    ],
)
def test_a_transition_behind_a_wider_one_is_never_taken(tmp_path, early, late):
    """SK503 names the line that always wins."""
    (problem,) = expect_problems(tmp_path, HEAD + f"    - {{{early}}}\n    - ¦{{{late}}}\n", "SK503")
    assert problem.message == "never taken: the transition in line 12 always wins"


@pytest.mark.parametrize(
    ("early", "late"),
    [
        ("from: up, to: odd, when: any critical", "from: up, to: down, when: any"),
        ("from: odd, to: down, when: any", "from: [up, odd], to: down, when: any critical"),
        ("from: up, to: odd, when: none", "from: up, to: down, when: none critical"),
        ("from: up, to: odd, when: any for 2 turns", "from: up, to: down, when: any critical for 3 turns"),
        ("from: up, to: odd, when: any for 2 turns", "from: up, to: down, when: any"),
        ("from: up, to: odd, after: 3 turns", "from: up, to: down, when: any for 2 turns"),
        ("from: up, to: odd, when: any, after: 2 turns", "from: up, to: down, when: any"),
        ("from: up, to: odd, when: any", "from: up, to: down, after: 2 turns"),
        ("from: up, to: odd, when: at least 2", "from: up, to: down, when: 'rule:hot'"),
    ],
)
def test_a_transition_that_has_a_chance_is_left_alone(tmp_path, early, late):
    """Unknown turns, counters and dwell are respected: the check never guesses."""
    pack = load(tmp_path, HEAD + f"    - {{{early}}}\n    - {{{late}}}\n")
    assert len(pack.transitions) == 4


def test_several_earlier_ones_can_win_together(tmp_path):
    """From each state another earlier transition always wins."""
    text = HEAD + (
        "    - {from: up, to: down, when: any}\n    - {from: odd, to: down, when: any}\n"
        "    - ¦{from: [up, odd], to: down, when: any critical}\n"
    )
    (problem,) = expect_problems(tmp_path, text, "SK503")
    assert "line 12, 13" in problem.message


def test_the_same_transition_twice_is_alike(tmp_path):
    """SK507, whatever the order of `from` and the blanks in the guard."""
    text = HEAD + (
        "    - {from: [up, odd], to: down, when: any critical for 2 turns}\n"
        "    - ¦{from: [odd, up], to: down, when: 'any  critical for 2 turns'}\n"
    )
    expect_problems(tmp_path, text, "SK507")


RULES = {
    name: Rule(name, Node("num"), "", "session", severity=severity, tags=tags)
    for name, severity, tags in (
        ("a", "info", ("x",)),
        ("b", "warning", ("x", "y")),
        ("c", "critical", ()),
        ("d", "critical", ("y",)),
    )
}
ATOMS = [
    f"{many}{severity}{tag}"
    for many, severity, tag in product(
        ("any", "none", "at least 2"), ("", " info", " critical"), ("", " tagged x", " tagged y")
    )
] + ["rule:a", "rule:b", "rule:d"]
GUARDS = st.recursive(
    st.sampled_from(ATOMS),
    lambda g: st.one_of(
        st.builds("({} and {})".format, g, g), st.builds("({} or {})".format, g, g), st.builds("not {}".format, g)
    ),
    max_leaves=4,
)
LEVELS = [dict(zip(RULES, values, strict=True)) for values in product("FUT", repeat=len(RULES))]


def evaluate(node: Node, levels: dict[str, str]) -> str:
    """Evaluate a guard as section 7 says; a rule's level is T (matches), U (unknown verdict) or F."""
    if node.op == "not":
        return {"F": "T", "U": "U", "T": "F"}[evaluate(node.args[0], levels)]
    if node.op in ("and", "or"):
        pick = min if node.op == "and" else max
        return pick((evaluate(a, levels) for a in node.args), key="FUT".index)
    if node.op == "rule":
        return levels[node.name]
    inside = [
        levels[r.id]
        for r in RULES.values()
        if SEVERITIES.index(r.severity) >= node.value and (not node.name or node.name in r.tags)
    ]
    if inside.count("T") >= node.n:
        return "T"
    return "U" if inside and set(inside) == {"U"} else "F"


@given(GUARDS, GUARDS)
def test_an_implication_always_holds(first, second):
    """Whenever the check says so, no turn makes the first true and the second not."""
    a, b = (check_guard(text, RULES, worst_severities(RULES)).node for text in (first, second))
    assert a is not None
    assert b is not None
    if implies(a, b, RULES):
        assert all(evaluate(b, levels) == "T" for levels in LEVELS if evaluate(a, levels) == "T")
    assert implies(a, a, RULES)


def test_an_unknown_rule_implies_nothing():
    """A rule that could not be checked has no severity to reason with."""
    node = check_guard("any", RULES, {}).node
    assert node is not None
    assert not implies(Node("rule", name="gone", text="rule:gone"), node, {})
