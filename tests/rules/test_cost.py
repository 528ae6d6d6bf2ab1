from __future__ import annotations

import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.machine import _clauses
from stabilitykit.rules import cost
from stabilitykit.rules.cost import guard_clauses, levels, row_too_large
from stabilitykit.rules.pack import Node
from tests.rules.packs import HEAD, expect_problems, load, refused

RULES = HEAD + "rules:\n"
ATOM = Node("rule", name="a")
GUARDS = st.recursive(
    st.just(ATOM),
    lambda below: (
        st.builds(lambda a: Node("not", (a,)), below)
        | st.builds(lambda op, a, b: Node(op, (a, b)), st.sampled_from(["and", "or"]), below, below)
    ),
    max_leaves=12,
)


def chain(length: int) -> str:
    """Write rules that each wait for the one before."""
    first = "  - {rule: r0, when: itl_ms > 1 ms}\n"
    return RULES + first + "".join(f"  - {{rule: r{i}, when: rule:r{i - 1}}}\n" for i in range(1, length))


@pytest.mark.capability("issue 2 §3: the static cost of a pack is limited")
def test_levels_of_references_are_bounded(tmp_path):
    """Sixteen levels are fine; of those beyond only the first is reported."""
    assert len(load(tmp_path, chain(17)).order) == 17
    text = chain(20).replace("{rule: r17, when: ", "{rule: r17, when: ¦")
    (problem,) = expect_problems(tmp_path, text, "SK603")
    assert "r17" in problem.message


def test_count_is_a_level_too():
    """A count waits for its condition, and adds to the levels of the rules inside."""
    inner = Node("rule", name="a")
    node = Node("cmp", (Node("count", (inner,)), Node("num")), ">")
    assert levels(node, {"a": 3}) == 5
    assert levels(Node("or", (inner, Node("rule", name="b"))), {"a": 3}) == 4


@given(GUARDS)
def test_clauses_are_counted_as_the_machine_unfolds_them(guard):
    """The count by De Morgan is the length of the list that the machine's tables hold, and of its parts."""
    clauses = _clauses(guard, negate=False)
    assert guard_clauses(guard) == (len(clauses), sum(map(len, clauses)))


def test_clauses_are_counted_without_unfolding():
    """Sixty pairs make 2^60 clauses, and under `not` the sixty pairs are a sum."""
    pairs = Node("or", (ATOM, ATOM))
    node = functools.reduce(lambda left, right: Node("and", (left, right)), [pairs] * 60)
    assert guard_clauses(node) == (2**60, 60 * 2**60)
    assert guard_clauses(Node("not", (node,))) == (60, 120)


def test_more_than_2000_rules_are_refused_before_they_are_checked(tmp_path):
    """The limit is found without looking at a single condition."""
    many = "".join(f"  - {{rule: r{i}, when: nonsense}}\n" for i in range(2001))
    found = expect_problems(tmp_path, "¦" + RULES + many, "SK602")
    assert found[0].message == "2,001 rules; 2,000 are allowed"


@pytest.mark.capability("issue 2 §3: the static cost of a pack is limited")
@pytest.mark.parametrize(
    ("limit", "what"), [("MAX_ATOMS", "comparisons"), ("MAX_TERMS", "computed terms"), ("MAX_NODES", "parts")]
)
def test_comparisons_and_terms_are_counted(tmp_path, monkeypatch, limit, what):
    """Comparisons count as often as they stand there, computed terms once however often they do."""
    text = RULES + (
        "  - {rule: a, when: delta(itl_ms) > 1 ms and delta(itl_ms) < 5 ms}\n"
        "  - {rule: b, when: not rule:a or is_history_truncated or 'mean(itl_ms, 3 turns) > 9 ms'}\n"
    ).replace("'", "")
    text = text.replace("or mean(itl_ms, 3 turns) > 9 ms}", "or prev(itl_ms) > 9 ms}")
    used = {"MAX_ATOMS": 5, "MAX_TERMS": 2, "MAX_NODES": 19}[limit]
    monkeypatch.setattr(cost, limit, used)
    load(tmp_path, text)
    monkeypatch.setattr(cost, limit, used - 1)
    (problem,) = expect_problems(tmp_path, "¦" + text, "SK602")
    assert problem.message == f"the conditions hold more than {used - 1} {what}"


def test_a_row_over_its_limit_has_an_error_ready(tmp_path):
    """The table compiler knows the row; the error is the language's."""
    pack = load(tmp_path, RULES + "  - {rule: a, when: itl_ms > 1 ms}\n")
    (problem,) = row_too_large(pack, 20_000, 16_384).problems
    assert (problem.code, problem.file) == ("SK604", pack.files[-1])
    assert "20,000" in problem.message


def test_a_jump_over_the_sixteenth_level_is_seen(tmp_path):
    """A reference inside a count is two levels at once."""
    deep = "".join(
        f"  - {{rule: r{i}, when: {'¦' * (i == 9)}'count(rule:r{i - 1}, 3 turns) > 1'}}\n" for i in range(1, 12)
    )
    expect_problems(tmp_path, RULES + "  - {rule: r0, when: itl_ms > 1 ms}\n" + deep, "SK603")


@pytest.mark.capability("issue 2 §3: the static cost of a pack is limited")
@pytest.mark.parametrize(
    ("section", "item"),
    [("params", "default: 1"), ("signals", "unit: ms"), ("detectors", "type: breaker"), ("actions", "doc: x")],
)
def test_no_section_is_endless(tmp_path, section, item):
    """More items than any pack needs are refused before they are checked."""
    many = "".join(f"  x{i}: {{{item}}}\n" for i in range(2001))
    (problem,) = refused(tmp_path, HEAD + f"{section}:\n{many}")
    assert problem.message == f"2,001 {section}; 2,000 are allowed"
