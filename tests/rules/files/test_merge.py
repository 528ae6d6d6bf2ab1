from __future__ import annotations

import pytest

from tests.rules.packs import HEAD, expect_problems, load, refused

BELOW = """stabilitykit: 1
pack: below
extends: [base]
params:
  slow: {default: 80 ms, doc: as before}
detectors:
  itl: {type: breaker, factor: 0.5, floor: 9 ms}
rules:
  - rule: first
    when: itl_ms > params.slow
    for: 3 turns
    severity: critical
    tags: [stable, latency]
    do: [{throttle: {}}]
    cooldown: 4 turns
  - rule: second
    when: rule:first
"""
TOP = "stabilitykit: 1\npack: test\nextends: [./below.yaml]\n"


@pytest.mark.capability("issue 2 §3: `extends` and `override`")
def test_an_override_replaces_the_given_fields(tmp_path):
    """What the later item does not say is inherited; lists are replaced whole; the place in the pack stays."""
    text = TOP + "rules:\n  - {rule: third, when: rt_ms > 5 s}\n  - rule: first\n    override: true\n    for: 5 turns\n"
    pack = load(tmp_path, text + "    tags: [sandbox]\n", below=BELOW)
    rule = pack.rule("first")
    assert [r.id for r in pack.rules] == ["first", "second", "third"]
    assert (rule.for_turns, rule.severity, rule.tags, rule.cooldown) == (5, "critical", ("sandbox",), 4)
    assert rule.when.text == "itl_ms > params.slow"
    assert rule.file.endswith("test.yaml")


def test_a_tilde_returns_a_field_to_its_default(tmp_path):
    """`for: ~` makes room for `count`, which excludes it."""
    count = "count: {at_least: 2, in: 4 turns}"
    text = TOP + f"rules:\n  - {{rule: first, override: true, severity: ~, for: ~, {count}}}\n"
    rule = load(tmp_path, text, below=BELOW).rule("first")
    assert (rule.severity, rule.for_turns, rule.count) == ("warning", 1, (2, 4))
    expect_problems(tmp_path, TOP + f"rules:\n  - {{rule: first, override: true, ¦{count}}}\n", "SK214", below=BELOW)
    expect_problems(tmp_path, TOP + "rules:\n  - ¦{rule: first, override: true, when: ~}\n", "SK202", below=BELOW)


def test_a_clash_without_override_names_the_first_place(tmp_path):
    """Every section is checked: params, detectors, rules and the machine."""
    machine = "¦machine: {initial: a, states: [{state: a}], transitions: []}\n"
    text = (
        TOP
        + "params:\n  ¦slow: {default: 1 ms}\ndetectors:\n  ¦itl: {type: breaker}\n"
        + "rules:\n  - rule: ¦first\n    when: itl_ms > 1 ms\n"
        + machine
    )
    found = expect_problems(tmp_path, text, "SK331", "SK331", "SK331", "SK331", below=BELOW)
    assert found[2].message.endswith("below.yaml:9")


def test_an_override_of_nothing_is_refused(tmp_path):
    """A misspelt id would silently add a rule."""
    text = TOP + "rules:\n  - {rule: frist, override: ¦true, when: itl_ms > 1 ms}\n"
    (problem,) = expect_problems(tmp_path, text, "SK332", below=BELOW)
    assert problem.hint == "did you mean `first`?"


def test_enabled_false_removes_an_item(tmp_path):
    """A reference to what was removed is an error that says so; a later file can bring it back."""
    off = "rules:\n  - {rule: first, override: true, enabled: false}\n"
    (problem,) = refused(tmp_path, TOP + off, below=BELOW)
    assert (problem.code, problem.line) == ("SK305", 17)
    pack = load(tmp_path, TOP + off + "  - {rule: second, override: true, when: rt_ms > 5 s}\n", below=BELOW)
    assert [r.id for r in pack.rules] == ["second"]
    middle = TOP + off
    back = "stabilitykit: 1\npack: top\nextends: [./middle.yaml]\n"
    back += "rules:\n  - {rule: first, override: true, enabled: true}\n"
    assert [r.id for r in load(tmp_path, back, middle=middle, below=BELOW).rules] == ["first", "second"]


def test_a_detector_of_another_type_inherits_nothing(tmp_path):
    """The same type keeps the settings that are not given; another type starts afresh."""
    same = load(tmp_path, TOP + "detectors:\n  itl: {override: true, factor: 0.1}\n", below=BELOW)
    assert same.detectors[0].settings == {"factor": 0.1, "floor": 9.0, "cold": True}
    other = load(tmp_path, TOP + "detectors:\n  itl: {override: true, type: drift}\n", below=BELOW)
    assert other.detectors[0].inputs == {"input": "embedding"}


def test_the_machine_is_one_item(tmp_path):
    """An override of the machine may replace the transitions and keep the states."""
    text = (
        TOP
        + "machine:\n  override: true\n  transitions:\n"
        + "".join(
            f"    - {{from: {a}, to: {b}, after: 1 turns}}\n"
            for a, b in (("healthy", "warning"), ("warning", "broken"), ("broken", "recovering"))
        )
    )
    pack = load(tmp_path, text, below=BELOW)
    assert [s.name for s in pack.states] == ["healthy", "warning", "recovering", "broken"]
    assert len(pack.transitions) == 3


def test_an_inherited_field_is_blamed_where_it_stands(tmp_path):
    """A detector removed above makes the condition below wrong, in its own file and line."""
    text = TOP + "params:\n  slow: {override: true, default: 0.5}\n"
    (problem,) = refused(tmp_path, text, below=BELOW)
    assert problem.file.endswith("below.yaml")
    assert (problem.line, problem.code) == (10, "SK411")


def test_defaults_of_a_later_file_win(tmp_path):
    """`defaults` are one set for all rules; a rule's own field is stronger."""
    text = HEAD + (
        "defaults: {on_missing: skip, hold_limit: 7 turns}\nrules:\n"
        "  - {rule: a, when: itl_ms > 1 ms}\n"
        "  - {rule: b, when: itl_ms > 1 ms, on_missing: fire, hold_limit: 3 turns}\n"
    )
    a, b = load(tmp_path, text).rules
    assert (a.on_missing, a.hold_limit) == ("skip", 7)
    assert (b.on_missing, b.hold_limit) == ("fire", 3)


def test_a_set_without_machine_is_refused(tmp_path):
    """Somewhere in the loaded set there must be one."""
    (problem,) = expect_problems(tmp_path, "stabilitykit: 1\npack: ¦test\n", "SK202")
    assert problem.hint == "`extends: [base]`"


def test_an_override_of_something_broken_is_not_blamed(tmp_path):
    """The item below was reported; the one above may be right."""
    text = "stabilitykit: 1\npack: test\nextends: [base, ./broken.yaml]\nparams:\n  p: {override: true, max: 3}\n"
    broken = "stabilitykit: 1\npack: broken\nparams:\n  p: 5\n"
    (problem, *others) = refused(tmp_path, text, broken=broken)
    assert [p.code for p in (problem, *others)] == ["SK203"]
