"""What cases have shown of a pack: sides of comparisons, rules, states, transitions."""

from __future__ import annotations

import pytest

from stabilitykit.compiled.program import build_program
from stabilitykit.detectors import DETECTORS
from stabilitykit.engine.coverage import Coverage, Watch, machine_key
from stabilitykit.rules.load import load_pack
from stabilitykit.turn import Turn

PACK = """\
stabilitykit: 1
pack: seen
extends: [base]
rules:
  - rule: slow
    when: itl_ms > 80 ms and not error == server
    severity: critical
  - rule: busy
    when: count(waiting_requests > 3, 2 samples) >= 1
  - rule: both
    when: rule:slow or is_history_truncated
"""


@pytest.fixture
def pack(tmp_path):
    """Write and load the pack."""
    path = tmp_path / "seen.yaml"
    path.write_text(PACK, encoding="utf-8")
    return load_pack(str(path), detectors=DETECTORS)


def walked(pack, *steps) -> Coverage:
    """Take steps of one case; give what they showed."""
    watch = Watch(build_program(pack))
    for step in steps:
        watch.observe(**step["observe"]) if "observe" in step else watch.evaluate(Turn(session_id="s", **step))
    coverage = Coverage(pack)
    coverage.add(watch)
    coverage.add_steps(watch)
    return coverage


def sides(coverage: Coverage) -> dict[str, str]:
    """Give the sides seen of each comparison of each rule."""
    return {
        f"{x.rule}: {x.text}": "".join(
            mark for mark, is_seen in (("T", x.is_true), ("F", x.is_false), ("U", x.is_unknown)) if is_seen
        )
        for x in coverage.comparisons
    }


@pytest.mark.capability("issue 3 §3: `test --coverage`: both sides of every comparison, unknown reported")
def test_sides_of_comparisons(pack):
    """Each comparison has the verdicts of its own operands, also under `not`, in `count` and behind `rule:`."""
    coverage = walked(
        pack,
        {"itl_ms": 90.0, "error": "none"},
        {"itl_ms": 70.0},
        {"observe": {"timestamp_s": 1.0, "waiting_requests": 9}},
    )
    assert sides(coverage) == {
        "slow: itl_ms > 80 ms": "TF",
        "slow: error == server": "FU",
        "busy: count(waiting_requests > 3, 2 samples) >= 1": "T",
        "busy: waiting_requests > 3": "T",
        "both: rule:slow": "TF",
        "both: is_history_truncated": "U",
    }


@pytest.mark.capability("issue 3 §3: `test --coverage`: every rule fired and silent, every state and transition")
def test_rules_are_silent_only_on_what_they_know(pack):
    """A rule is silent in a case that gave it known values and on which it never matched; unknown is not silence."""
    coverage = walked(pack, {"itl_ms": 70.0, "error": "none"})
    assert {r.rule: (r.fired, r.silent) for r in coverage.rules.values()} == {
        "slow": (False, True),
        "busy": (False, False),
        "both": (False, False),
    }


def test_a_turn_moves_no_rule_of_the_replica(pack):
    """A replica's comparison is looked at on samples only."""
    coverage = walked(pack, {"itl_ms": 70.0})
    assert sides(coverage)["busy: waiting_requests > 3"] == ""


def test_states_and_transitions_belong_to_the_file_of_the_machine(pack):
    """A pack that inherits its machine has none to cover; the machine's own file takes the steps of all heirs."""
    base = load_pack("base", detectors=DETECTORS)
    assert machine_key(pack) == machine_key(base)
    assert walked(pack, {"itl_ms": 90.0, "error": "none"}).states == {}
    watch = Watch(build_program(pack))
    for _ in range(6):
        watch.evaluate(Turn(session_id="s", itl_ms=90.0, error="none"))
    coverage = Coverage(base)
    coverage.add_steps(watch)
    assert coverage.states == {"healthy": True, "warning": False, "recovering": True, "broken": True}
    assert {(e.source, e.to) for e in coverage.edges.values() if e.is_taken} == {
        ("healthy", "broken"),
        ("broken", "recovering"),
    }


def test_another_machine_is_not_covered(pack):
    """Steps on one machine say nothing about another."""
    chat = Coverage(load_pack("chat", detectors=DETECTORS))
    watch = Watch(build_program(pack))
    watch.evaluate(Turn(session_id="s", itl_ms=90.0, error="none"))
    chat.add_steps(watch)
    assert not any(chat.states.values())


def test_ratio_and_gaps(pack):
    """The ratio counts sides; each that is missing is said."""
    coverage = Coverage(pack)
    assert coverage.ratio == 0.0
    assert "slow: `itl_ms > 80 ms` is never true" in list(coverage.gaps())
    assert len(list(coverage.gaps())) == sum(of for _, of in coverage.counts().values())
    assert Coverage(load_pack("api", detectors=DETECTORS)).ratio == 1.0
