from __future__ import annotations

import pytest

from tests.rules.packs import HEAD, expect_problems, load

PARAMS = "params:\n  n: {default: 3 turns}\n  m: {default: 4 samples}\n  k: {default: 2}\n  big: {default: 300 turns}\n"


def test_durations_and_counts_take_params(tmp_path):
    """`params.x` may stand wherever a literal of its type may."""
    text = (
        HEAD
        + PARAMS
        + (
            "rules:\n"
            "  - {rule: a, when: itl_ms > 1 ms, for: params.n, keep_for: params . n, cooldown: 1 turn,\n"
            "     do: [{throttle: {}}]}\n"
            "  - {rule: b, when: itl_ms > 1 ms, count: {at_least: params.k, in: params.n}}\n"
            "  - {rule: c, when: kv_usage_ratio > 0.9, for: params.m, keep_for: 1 sample}\n"
        )
    )
    a, b, c = load(tmp_path, text).rules
    assert (a.for_turns, a.keep_for, a.cooldown, b.count, c.for_turns, c.keep_for) == (3, 3, 1, (2, 3), 4, 1)


@pytest.mark.parametrize(
    ("code", "field"),
    [
        ("SK412", "for: ¦3"),
        ("SK412", "for: ¦three"),
        ("SK412", "for: ¦3 ms"),
        ("SK412", "for: ¦2.5 turns"),
        ("SK412", "for: ¦-1 turns"),
        ("SK412", "for: ¦3 samples"),
        ("SK412", "for: ¦params.m"),
        ("SK412", "for: ¦params.k"),
        ("SK303", "for: ¦params.x"),
        ("SK203", "for: ¦[3]"),
        ("SK206", "for: ¦0 turns"),
        ("SK206", "for: ¦256 turns"),
        ("SK206", "for: ¦params.big"),
        ("SK206", "keep_for: ¦256 turns"),
        ("SK206", "hold_limit: ¦999999999999 turns"),
        ("SK206", "count: {at_least: ¦0, in: 5 turns}"),
        ("SK206", "count: {at_least: ¦6, in: 5 turns}"),
        ("SK206", "count: {at_least: 2, in: ¦65 turns}"),
        ("SK412", "count: {at_least: 2, in: ¦5}"),
        ("SK410", "count: {at_least: ¦params.n, in: 5 turns}"),
        ("SK202", "count: ¦{in: 5 turns}"),
        ("SK202", "count: ¦{at_least: 2}"),
        ("SK201", "count: {at_least: 2, in: 5 turns, ¦of: 3}"),
        ("SK203", "count: ¦2"),
    ],
)
def test_a_wrong_duration_is_located(tmp_path, code, field):
    """Turns need their word, the word of the rule's scope, and a number within the limits."""
    expect_problems(tmp_path, HEAD + PARAMS + f"rules:\n  - rule: a\n    when: itl_ms > 1 ms\n    {field}\n", code)


def test_a_replica_rule_counts_samples(tmp_path):
    """The word follows the memory."""
    text = HEAD + "rules:\n  - {rule: a, when: kv_usage_ratio > 0.9, for: ¦3 turns}\n"
    (problem,) = expect_problems(tmp_path, text, "SK412")
    assert problem.hint == "`3 samples`"


def test_for_excludes_count_and_cooldown_needs_do(tmp_path):
    """SK214, at the key that is too many."""
    count = "count: {at_least: 1, in: 2 turns}"
    expect_problems(tmp_path, HEAD + f"rules:\n  - {{rule: a, when: itl_ms > 1 ms, ¦for: 2 turns, {count}}}\n", "SK214")
    expect_problems(tmp_path, HEAD + "rules:\n  - {rule: a, when: itl_ms > 1 ms, ¦cooldown: 2 turns}\n", "SK214")
