"""The grammar of conditions and guards."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.rules.conditions.descent import Tree
from stabilitykit.rules.conditions.guard_syntax import parse_guard
from stabilitykit.rules.conditions.lexer import RESERVED, SyntaxProblem
from stabilitykit.rules.conditions.syntax import parse_condition, read_condition


def sketch(tree: Tree) -> str:
    """Write a tree as a prefix expression."""
    own = f"{tree.name} {tree.unit}".strip() if tree.unit else tree.name or tree.kind
    return f"{own}({', '.join(map(sketch, tree.args))})" if tree.args else own


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("itl.over and itl_ms > params.slow_itl", "and(itl.over, >(itl_ms, params.slow_itl))"),
        ("drift.is_drift", "drift.is_drift"),
        ("kv_fragmentation_ratio > 40 %", ">(kv_fragmentation_ratio, 40 %)"),
        ("not (a > 1 or rule:itl-over-baseline)", "not(or(>(a, 1), itl-over-baseline))"),
        ("finish_reason in {length, stop}", "in(finish_reason, length, stop)"),
        ("count(itl_ms > 80 ms and x > 2, 5 turns) >= 2", ">=(count(and(>(itl_ms, 80 ms), >(x, 2)), 5 turns), 2)"),
        ("output_tokens / rt_ms > 20 tokens/s", ">(/(output_tokens, rt_ms), 20 tokens/s)"),
        ("queue_full_per_s >= 17 /s", ">=(queue_full_per_s, 17 /s)"),
        ("max(x, params.n) > 3", ">(max(x, params.n), 3)"),
        ("gpu_temperature_c>85C", ">(gpu_temperature_c, 85 C)"),
        ("not a > b", "not(>(a, b))"),
        ("not not a", "not(not(a))"),
        ("not a and b or c", "or(and(not(a), b), c)"),
        ("a or b and c", "or(a, and(b, c))"),
        ("a or b or c", "or(or(a, b), c)"),
        ("a - b - c > 0", ">(-(-(a, b), c), 0)"),
        ("a + b * c > 0", ">(+(a, *(b, c)), 0)"),
        ("-a * b > 0", ">(*(neg(a), b), 0)"),
        ("- - 5 < a", "<(neg(neg(5)), a)"),
        ("a\n  or\tb", "or(a, b)"),
        ("a / s_ms > 5 / s_ms", ">(/(a, s_ms), /(5, s_ms))"),
        ("a > 1.5e-3 s", ">(a, 1.5e-3 s)"),
        ("itl . is_over and rule : a-b", "and(itl.is_over, a-b)"),
        ("rules > 3", ">(rules, 3)"),
    ],
)
def test_trees(text, tree):
    """Operators bind as the grammar says: not > and > or, comparisons over sums over products."""
    assert sketch(parse_condition(text)) == tree


@pytest.mark.parametrize(
    ("text", "code", "col", "width"),
    [
        ("", "SK401", 1, 1),
        ("x > ", "SK401", 5, 1),
        ("x >> 5", "SK401", 4, 1),
        ("x > 05", "SK401", 5, 2),
        ("x > 1_000", "SK401", 5, 5),
        ("x > 5.", "SK401", 5, 2),
        ("x > .5", "SK401", 5, 1),
        ("x > " + "1" * 101, "SK401", 5, 101),
        ("X > 5", "SK401", 1, 1),
        ("not", "SK401", 4, 1),
        ("a and and b", "SK401", 7, 3),
        ("a AND b", "SK401", 3, 3),
        ("a && b", "SK401", 3, 1),
        ("x > 3 # high", "SK401", 7, 1),
        ("x = 3", "SK401", 3, 1),
        ("(a or b", "SK401", 8, 1),
        ("a)", "SK401", 2, 1),
        ("a > 3 for 3 turns", "SK401", 7, 3),
        ("f in {}", "SK401", 7, 1),
        ("f in {a b}", "SK401", 9, 1),
        ("f in length", "SK401", 6, 6),
        ("rule:Bad", "SK401", 1, 8),
        ("a tagged b", "SK401", 10, 1),
        ("x > \u00a03", "SK401", 5, 1),
        ("x > \u200b3", "SK401", 5, 1),
        ("1 < x < 5", "SK421", 7, 1),
        ("a == b != c", "SK421", 8, 2),
        ("x == true", "SK422", 6, 4),
        ("false", "SK422", 1, 5),
        ("x > 5 y", "SK411", 7, 1),
        ("x > 5 Ms", "SK411", 7, 2),
        ("mean(x) > 3", "SK306", 1, 4),
        ("abs(x, y) > 3", "SK306", 1, 3),
        ("median(x, 5 turns) > 3", "SK306", 1, 6),
        ("mean() > 3", "SK306", 1, 4),
        ("mean > 3", "SK306", 1, 4),
        ("(" * 17 + "x" + ")" * 17, "SK601", 18, 1),
        ("not " * 17 + "x", "SK601", 69, 1),
        ("-" * 17 + "x > 1", "SK601", 18, 1),
        ("abs(" * 17 + "x" + ")" * 17 + " > 1", "SK601", 69, 1),
    ],
)
def test_mistakes(text, code, col, width):
    """Every mistake of syntax has its code and its exact place."""
    with pytest.raises(SyntaxProblem) as caught:
        parse_condition(text)
    problem = caught.value
    assert (problem.code, problem.offset + 1, problem.width) == (code, col, width)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a AND b", "write `and`"),
        ("a & b", "write `and`"),
        ("a || b", "write `or`"),
        ("!a", "write `not`"),
        ("x = 3", "write `==`"),
        ("Itl_ms > 3", "write `itl_ms`"),
        ("x > 3 parsecs", "units are"),
        ("x > 3 tokns", "did you mean `tokens`?"),
        ("x > 3 sec", "did you mean `s`?"),
        ("x > 3 seconds", "did you mean `s`?"),
        ("x > 3 msec", "did you mean `ms`?"),
        ("x => 3", "did you mean `>=`?"),
        ("x =< 3", "did you mean `<=`?"),
        ("maen(x, 5 turns) > 3", "did you mean `mean`?"),
        ("a > 3 for 3 turns", "`for: 3 turns`"),
        ("x # y", "no comments"),
        ("f == 'stop'", "without quotes"),
    ],
)
def test_hints(text, hint):
    """Habits from other languages get the right spelling."""
    with pytest.raises(SyntaxProblem) as caught:
        parse_condition(text)
    assert hint in caught.value.hint


def test_sixteen_levels_are_allowed():
    """The limit is 16 nested levels and 256 nodes, not one less."""
    assert parse_condition("(" * 16 + "x" + ")" * 16).name == "x"
    assert parse_condition(" or ".join(["a"] * 128)).kind == "or"
    with pytest.raises(SyntaxProblem) as caught:
        parse_condition(" or ".join(["a"] * 129))
    assert caught.value.code == "SK601"


def test_values_of_a_set_count_as_comparisons():
    """A set of 64 words is within the limit, one of 65 is not."""
    for words, fits in ((64, True), (65, False)):
        tree, problems = read_condition("f in {" + ", ".join(f"w{i}" for i in range(words)) + "}")
        assert (tree is not None and not problems) is fits


def test_several_mistakes_are_collected():
    """What does not hide the rest is reported together with the rest."""
    _, problems = read_condition("1 < x < 5 and mean(y) > 3 foo or z == true")
    assert [problem.code for problem in problems] == ["SK421", "SK306", "SK411", "SK422"]


def test_places_of_nodes():
    """A node knows where it begins and ends."""
    text = "not (itl_ms > 80 ms)"
    tree = parse_condition(text)
    inner = tree.args[0]
    assert text[tree.offset : inner.end] == "not (itl_ms > 80 ms"
    assert text[inner.offset : inner.end] == "itl_ms > 80 ms"


def test_reserved_words():
    """The words of the grammar are no names; words of enums may be."""
    assert {"and", "mean", "turns", "ms", "params", "tagged", "true"} <= RESERVED
    assert not {"error", "stop", "itl_ms"} & RESERVED


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("any critical", "1 critical"),
        ("none for 2 turns", "for(1, 2 turns)"),
        ("at least 2 warning tagged kv-cache for 3 turns", "for(2 warning(kv-cache), 3 turns)"),
        ("not (any or rule:a-b) and none info", "and(not(or(1, a-b)), 1 info)"),
        ("any tagged v2-5s or none", "or(1(v2-5s), 1)"),
        ("any tagged a-for-b for params.n", "for(1(a-for-b), params.n)"),
    ],
)
def test_guards(text, tree):
    """Guards of the grammar."""
    assert sketch(parse_guard(text)) == tree


@pytest.mark.parametrize(
    ("text", "code", "col"),
    [
        ("none for 2", "SK412", 10),
        ("none for 2 ms", "SK412", 10),
        ("none for two turns", "SK401", 10),
        ("any foo", "SK401", 5),
        ("at least x", "SK401", 10),
        ("at least 2.5", "SK401", 10),
        ("at most 2", "SK401", 4),
        ("any tagged Bad", "SK401", 12),
        ("any tagged -x", "SK401", 5),
        ("itl_ms > 3", "SK401", 1),
        ("any and", "SK401", 8),
        ("(any", "SK401", 5),
        ("(any for 2 turns)", "SK401", 6),
        ("not " * 17 + "any", "SK601", 69),
        (" or ".join(["any"] * 129), "SK601", 1),
        ("any # x", "SK401", 5),
    ],
)
def test_bad_guards(text, code, col):
    """Mistakes in guards have their code and place."""
    with pytest.raises(SyntaxProblem) as caught:
        parse_guard(text)
    assert (caught.value.code, caught.value.offset + 1) == (code, col)


_SOUP = st.lists(
    st.sampled_from(
        "a itl.is_over params.n rule:a-b and or not in > >= < <= == != + - * / ( ) { } , 3 0.5 1e9 ms turns % true "
        "mean( count( prev( max( any none at least 2 tagged kv critical for X # . 05 tokens/s /s é \n".split(" ")
    ),
    max_size=40,
)


def mistake(parse, text):
    """Give code and offset of the first mistake."""
    try:
        parse(text)
    except SyntaxProblem as problem:
        return problem.code, problem.offset
    return "", 0


@given(_SOUP, st.sampled_from([parse_condition, parse_guard]))
def test_token_soup(words, parse):
    """Random words raise nothing but a located problem."""
    text = " ".join(words)
    code, offset = mistake(parse, text)
    assert 0 <= offset <= len(text)
    assert code in {"", "SK401", "SK411", "SK412", "SK306", "SK421", "SK422", "SK601"}


@given(st.text(max_size=60))
def test_any_text(text):
    """Random characters raise nothing but a located problem."""
    tree, problems = read_condition(text)
    assert tree is not None or problems


@pytest.mark.parametrize("unit", ["(", "-", "not ", "abs(", "{", "a in {", "a or ", "1 < ", "a,", "mean(a,"])
def test_long_hostile_texts(unit):
    """Sixteen kibibytes of anything end in a located problem, without deep recursion."""
    _, problems = read_condition((unit * 16_384)[:16_384])
    assert problems
