from __future__ import annotations

import pytest

from tests.rules.packs import HEAD, expect_problems, load

RULES = HEAD + "detectors:\n  itl: {type: breaker}\nparams:\n  slow: {default: 80 ms}\nrules:\n"


def test_a_rule_has_its_defaults(tmp_path):
    """A rule needs only an id and a condition; it may do nothing."""
    rule = load(tmp_path, RULES + "  - {rule: a, when: itl_ms > params.slow}\n").rule("a")
    assert (rule.severity, rule.for_turns, rule.count, rule.keep_for, rule.cooldown) == ("warning", 1, None, 0, 0)
    assert (rule.on_missing, rule.hold_limit, rule.do, rule.reason, rule.tags) == ("hold", 20, (), "", ())
    assert (rule.scope, rule.line, rule.source) == ("session", 9, "itl_ms > params.slow")


def test_a_rule_lives_where_its_condition_lives(tmp_path):
    """References count: a session rule that names a replica's rule stays a session's, alone it is the replica's."""
    text = RULES + (
        "  - {rule: both, when: rule:far and itl_ms > 80 ms}\n  - {rule: echo, when: rule:far}\n"
        "  - {rule: far, when: kv_usage_ratio > 90 %}\n  - {rule: gpu, when: gpu_temperature_c > 80 C}\n"
    )
    pack = load(tmp_path, text)
    assert [r.scope for r in pack.rules] == ["session", "replica", "replica", "device"]
    assert pack.order == ("far", "gpu", "both", "echo")


def test_the_memory_of_a_rule_is_named_by_what_it_remembers(tmp_path):
    """A param, `for` or severity may change; the condition and the length of `count` may not."""

    def memory(fields: str, slow: str = "80 ms") -> str:
        return load(tmp_path, RULES.replace("80 ms", slow) + f"  - {{rule: a, {fields}}}\n").rule("a").memory

    base = memory("when: itl_ms > params.slow, count: {at_least: 1, in: 3 turns}")
    assert memory("when: itl_ms>params . slow, count: {at_least: 2, in: 3 turns}, severity: info", "90 ms") == base
    assert memory("when: itl_ms > params.slow, count: {at_least: 1, in: 4 turns}") != base
    assert memory("when: itl_ms > 80 ms, count: {at_least: 1, in: 3 turns}") != base


def test_a_circle_is_printed_once(tmp_path):
    """Rules that wait for one another are named in order; a rule behind the circle is not blamed."""
    text = RULES + (
        "  - {rule: z, when: rule:a}\n  - {rule: a, when: ¦rule:b}\n  - {rule: b, when: rule:c}\n"
        "  - {rule: c, when: rule:a or itl_ms > 80 ms}\n  - {rule: me, when: ¦rule:me}\n"
    )
    found = expect_problems(tmp_path, text, "SK307", "SK307")
    assert [p.message for p in found] == ["rules name each other: a -> b -> c -> a", "rules name each other: me -> me"]


@pytest.mark.parametrize(
    ("code", "when"),
    [
        ("SK301", "¦itl > 80 ms"),
        ("SK302", "itl.¦is_ovr"),
        ("SK303", "itl_ms > params.¦slw"),
        ("SK305", "¦rule:nobody"),
        ("SK411", "itl_ms > ¦80"),
        ("SK401", "itl_ms > 80 ms ¦)"),
    ],
)
def test_a_mistake_in_a_condition_is_located_inside_it(tmp_path, code, when):
    """The caret stands under the word of the condition, not under the condition."""
    expect_problems(tmp_path, RULES + f"  - rule: a\n    when: {when}\n", code)
    expect_problems(tmp_path, RULES + f"  - rule: a\n    when: >-\n      itl_ms > 1 ms and\n      {when}\n", code)


@pytest.mark.parametrize(
    "reason",
    ["{{ itl_ms }}", "{{ params.slow }}", "{{ itl.baseline_ms }}", "{{ itl.is_over }}", "100 % of {itl}"],
)
def test_a_reason_may_print_what_the_condition_reads(tmp_path, reason):
    """Signals and params of `when`, and every output of a detector that `when` reads."""
    text = RULES + f'  - rule: a\n    when: itl.is_over and itl_ms > params.slow\n    reason: "{reason}"\n'
    assert load(tmp_path, text).rule("a").reason == reason


def test_a_wrong_template_is_located(tmp_path):
    """Names are SK308, everything else about a template is SK605."""
    text = RULES + '  - rule: a\n    when: itl_ms > 80 ms\n    reason: "slow: {{ ¦itl.baseline_ms }}"\n'
    expect_problems(tmp_path, text, "SK308")
    text = RULES + '  - rule: a\n    when: itl_ms > 80 ms\n    reason: "¦{% for x in y %}{% endfor %}"\n'
    expect_problems(tmp_path, text, "SK605")
    text = RULES + f"  - rule: a\n    when: itl_ms > 80 ms\n    reason: ¦{'x' * 2001}\n"
    expect_problems(tmp_path, text, "SK605")
