from __future__ import annotations

import pytest

from stabilitykit.decision import Action
from stabilitykit.rules import states
from stabilitykit.rules.load import load_pack
from tests.rules.packs import expect_problems, load

START = (
    "stabilitykit: 1\npack: test\nrules:\n  - {rule: hot, when: itl_ms > 80 ms, severity: critical, tags: [stable]}\n"
)
MACHINE = START + "machine:\n  initial: up\n  states: [{state: up}, {state: down}]\n  transitions:\n"
THERE = "    - {from: up, to: down, when: any critical}\n"


def test_a_machine_is_resolved(tmp_path):
    """States in order of severity with their actions, transitions with guard and counters."""
    text = (
        START
        + "params: {n: {default: 4 turns}}\nmachine:\n  initial: up\n  states:\n    - state: up\n"
        + "    - {state: down, do: [{emit_metric: {}}], while: [{switch_model: {to: light}}], was: broken}\n"
        + "  transitions:\n"
        + "    - {from: [up], to: down, when: any critical or rule:hot for params.n}\n"
        + "    - {from: down, to: up, when: none for 2 turns, after: params.n}\n"
    )
    pack = load(tmp_path, text)
    up, down = pack.states
    assert (pack.initial, up.name, down.name, down.was) == ("up", "up", "down", "broken")
    assert down.do == (Action("emit_metric", {"name": "stability_event"}),)
    assert down.while_ == (Action("switch_model", {"to": "light"}),)
    assert [a.source for a in (*down.do, *down.while_)] == ["state:down", "state:down"]
    there, back = pack.transitions
    assert (there.from_, there.to, there.for_turns, there.after) == (("up",), "down", 4, 0)
    assert (back.for_turns, back.after) == (2, 4)
    assert there.memory == "up>down|any critical or rule:hot"


def test_a_guard_counter_keeps_its_name(tmp_path):
    """The memory of a guard is from, to and canonical guard: not `for`, not `after`, not the order of `from`."""

    def memory(transition: str) -> str:
        more = "    - {from: up, to: odd, after: 9 turns}\n    - {from: odd, to: up, after: 1 turns}\n"
        text = MACHINE.replace("{state: down}", "{state: down}, {state: odd}") + f"    - {transition}\n" + more
        return load(tmp_path, text).transitions[0].memory

    base = memory("{from: [up, odd], to: down, when: any critical for 3 turns}")
    assert memory("{from: [odd, up], to: down, when: 'any  critical', after: 2 turns}") == base
    assert memory("{from: up, to: down, when: any critical}") != base
    assert memory("{from: [up, odd], to: down, when: any}") != base


@pytest.mark.parametrize(
    ("code", "transition"),
    [
        ("SK202", "¦{to: down, when: any}"),
        ("SK202", "¦{from: up, when: any}"),
        ("SK501", "{from: ¦upp, to: down, when: any}"),
        ("SK501", "{from: [up, ¦upp], to: down, when: any}"),
        ("SK501", "{from: up, to: ¦broken, when: any}"),
        ("SK504", "¦{from: up, to: down}"),
        ("SK505", "{from: up, to: ¦up, when: any}"),
        ("SK507", "{from: [up, ¦up], to: down, when: any}"),
        ("SK202", "{from: ¦[], to: down, when: any}"),
        ("SK506", "{from: up, to: down, when: any tagged ¦fast}"),
        ("SK305", "{from: up, to: down, when: '¦rule:cold'}"),
        ("SK401", "{from: up, to: down, when: any ¦kritical}"),
        ("SK412", "{from: up, to: down, after: ¦5}"),
        ("SK412", "{from: up, to: down, after: ¦5 samples}"),
        ("SK206", "{from: up, to: down, after: ¦0 turns}"),
        ("SK206", "{from: up, to: down, after: ¦65536 turns}"),
        ("SK303", "{from: up, to: down, after: ¦params.x}"),
        ("SK201", "{from: up, to: down, when: any, ¦do: []}"),
        ("SK402", "{from: up, to: down, when: ¦3}"),
        ("SK203", "¦up"),
    ],
)
def test_a_wrong_transition_is_located(tmp_path, code, transition):
    """Names of states, guards and counters are checked where they stand."""
    expect_problems(tmp_path, MACHINE + THERE + f"    - {transition}\n", code)


@pytest.mark.parametrize(
    ("code", "machine"),
    [
        ("SK203", "¦[]"),
        ("SK202", "¦{initial: up, states: [{state: up}]}"),
        ("SK202", "¦{states: [{state: up}], transitions: []}"),
        ("SK203", "{initial: up, states: ¦{up: {}}, transitions: []}"),
        ("SK203", "{initial: up, states: [{state: up}], transitions: ¦{}}"),
        ("SK202", "{initial: up, states: ¦[], transitions: []}"),
        ("SK501", "{initial: ¦upp, states: [{state: up}], transitions: []}"),
        ("SK502", "{initial: up, states: [{state: up}, {state: ¦lost}], transitions: []}"),
        ("SK507", "{initial: up, states: [{state: up}, {state: ¦up}], transitions: []}"),
        ("SK507", "{initial: up, states: [{state: up, was: ¦up}], transitions: []}"),
        ("SK202", "{initial: up, states: [{state: up}, ¦{do: []}], transitions: []}"),
        ("SK203", "{initial: up, states: [{state: up}, ¦down], transitions: []}"),
        ("SK205", "{initial: up, states: [{state: up}, {state: ¦Down}], transitions: []}"),
        ("SK304", "{initial: up, states: [{state: up, do: [{¦emit: {}}]}], transitions: []}"),
        ("SK304", "{initial: up, states: [{state: up, while: [{¦emit: {}}]}], transitions: []}"),
        ("SK201", "{initial: up, states: [{state: up}], transitions: [], ¦enabled: true}"),
    ],
)
def test_a_wrong_machine_is_located(tmp_path, code, machine):
    """The machine as a whole: states that exist once, can be reached, and were something."""
    expect_problems(tmp_path, START + f"machine: {machine}\n", code)


def doubling(pairs: int) -> str:
    """Write a guard of pairs, each of which doubles the clauses."""
    return " and ".join(["(any or rule:hot)"] * pairs)


def test_a_guard_that_doubles_too_often_is_refused_in_its_place(tmp_path):
    """Eight pairs unfold into 256 clauses and pass; fifteen are refused by number before anything is built."""
    load(tmp_path, MACHINE + f"    - {{from: up, to: down, when: {doubling(8)}}}\n")
    text = MACHINE + THERE + f"    - {{from: up, to: down, when: ¦{doubling(15)}}}\n"
    (problem,) = expect_problems(tmp_path, text, "SK602")
    assert problem.message == "the guard unfolds into 32,768 clauses; 256 are allowed"


@pytest.mark.parametrize(
    ("limit", "used", "what"),
    [
        ("MAX_CLAUSES", 9, "unfold into more than 8 clauses"),
        ("MAX_GUARD_TESTS", 25, "unfold into clauses of more than 24 parts"),
        ("MAX_PARTS", 12, "hold more than 11 parts"),
    ],
)
def test_the_guards_of_a_pack_are_counted_together(tmp_path, monkeypatch, limit, used, what):
    """A pack of many guards, each small enough, is refused as well."""
    text = MACHINE + THERE.replace("- {", "¦- {")
    text += f"    - {{from: up, to: down, when: {doubling(3)}}}\n"
    monkeypatch.setattr(states, limit, used)
    load(tmp_path, text.replace("¦", ""))
    monkeypatch.setattr(states, limit, used - 1)
    (problem,) = expect_problems(tmp_path, text, "SK602")
    assert problem.message == f"the guards {what}"


def test_two_states_cannot_have_been_one(tmp_path):
    """A session in the old state would not know where to go."""
    text = START + (
        "machine:\n  initial: up\n  states: [{state: up, was: old}, {state: down, was: ¦old}]\n"
        "  transitions: [{from: up, to: down, after: 1 turns}]\n"
    )
    expect_problems(tmp_path, text, "SK507")


def test_a_severity_without_rules_is_a_warning(tmp_path):
    """A guard that can never be true is worth a word, not an error: packs are extended."""
    text = MACHINE + THERE.replace("critical", "critical tagged stable") + "    - {from: down, to: up, when: any}\n"
    assert load(tmp_path, text).warnings == ()
    text = text.replace("severity: critical", "severity: info").replace("when: any}", "after: 1 turns}")
    (warning,) = load(tmp_path, text).warnings
    assert warning.endswith("test.yaml:9:34: warning: no rule is critical or worse tagged stable")


def test_an_inherited_machine_warns_nobody(tmp_path):
    """A pack without a critical rule may extend a machine whose guards ask for one."""
    (tmp_path / "own.yaml").write_text(
        "stabilitykit: 1\npack: own\nextends: [base]\nrules:\n  - {rule: slow, when: itl_ms > 80 ms}\n"
    )
    assert load_pack(str(tmp_path / "own.yaml"), detectors={}).warnings == ()
