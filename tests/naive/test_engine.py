"""Identity, faults, derived signals, models, receipts and conflicts, as the oracle decides them."""

from __future__ import annotations

import math
from typing import Any

import attrs
import pytest

from stabilitykit.decision import Receipt
from stabilitykit.errors import TurnError, UnknownSignal, UsageError
from stabilitykit.rules.pack import State
from stabilitykit.signals import SignalSpec
from stabilitykit.turn import Turn
from tests.naive import build
from tests.naive.engine import NaiveEngine
from tests.naive.fakes import FAKE_TWINS
from tests.naive.small import action, over, pack_of, rule_of, transition, use_fake

SLOW = rule_of("slow", over("itl_ms", 80))
TRUNCATED = rule_of("cut", build.truth(build.operand("is_history_truncated")), on_missing="skip")


def turn(**fields):
    """Give a turn of session `s`."""
    return Turn(session_id="s", **fields)


# identity


def test_same_content_gives_the_stored_outcome():
    """A repeated turn moves nothing, whatever way its numbers are written."""
    engine = NaiveEngine(pack_of(SLOW))
    first = engine.evaluate(turn(turn_id=4, itl_ms=90))
    assert engine.evaluate(turn(turn_id=4, itl_ms=90.0)) is first


def test_other_content_is_a_conflict():
    """The stored outcome comes back with a fault; the memory stays."""
    engine = NaiveEngine(pack_of(SLOW))
    first = engine.evaluate(turn(turn_id=4, itl_ms=90.0))
    again = engine.evaluate(turn(turn_id=4, itl_ms=70.0))
    assert again == attrs.evolve(first, faults=[("turn_conflict", "")])
    assert engine.evaluate(turn(itl_ms=90.0)).fired == ()


def test_greater_revision_is_one_more_turn():
    """A regenerated answer is accepted on present memory."""
    engine = NaiveEngine(pack_of(rule_of("slow", over("itl_ms", 80), for_turns=2)))
    engine.evaluate(turn(turn_id=4, itl_ms=90.0))
    assert engine.evaluate(turn(turn_id=4, itl_ms=90.0, revision=1)).matches == ("slow",)
    assert engine.evaluate(turn(turn_id=4, itl_ms=90.0, revision=0)).faults == [("turn_conflict", "")]


def test_old_turn_is_stale_and_a_gap_is_reported():
    """An old number moves nothing and wants nothing; a gap is only reported."""
    engine = NaiveEngine(pack_of(rule_of("slow", over("itl_ms", 80), do=(action("throttle"),))))
    engine.evaluate(turn(turn_id=4, itl_ms=70.0))
    assert engine.evaluate(turn(turn_id=9, itl_ms=90.0)).faults == [("turn_gap", "")]
    stale = engine.evaluate(turn(turn_id=8, itl_ms=90.0))
    assert (stale.faults, stale.actions, stale.state) == ([("stale", "")], [], "healthy")
    assert engine.sessions["", "s"].turn_id == 9


def test_numbers_are_issued_from_one():
    """Without numbers the engine counts itself, and two turns alike are two turns."""
    engine = NaiveEngine(pack_of(rule_of("slow", over("itl_ms", 80), for_turns=2)))
    engine.evaluate(turn(itl_ms=90.0))
    assert engine.evaluate(turn(itl_ms=90.0)).matches == ("slow",)
    assert engine.sessions["", "s"].turn_id == 2


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ({"turn_id": -1}, TurnError),
        ({"turn_id": 2**63}, TurnError),
        ({"turn_id": 1.0}, TurnError),
        ({"extra": {"no_such": 1.0}}, UnknownSignal),
        ({"applied": "yes"}, TurnError),
    ],
)
def test_misuse_raises_and_stores_nothing(bad, error):
    """A turn that can never be accepted leaves no trace."""
    engine = NaiveEngine(pack_of(SLOW))
    with pytest.raises(error):
        engine.evaluate(turn(**bad))
    assert not engine.sessions


# values


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        (None, []),
        (math.nan, [("invalid", "itl_ms")]),
        (math.inf, [("invalid", "itl_ms")]),
        (-0.5, [("invalid", "itl_ms")]),
        (1.0000001e9, [("invalid", "itl_ms")]),
        ("90", [("type_mismatch", "itl_ms")]),
        ([90.0], [("type_mismatch", "itl_ms")]),
    ],
)
def test_unusable_value_is_unknown(value, faults):
    """Missing is silent; invalid and mistyped values are faults; all leave the verdict unknown."""
    outcome = NaiveEngine(pack_of(SLOW)).evaluate(turn(itl_ms=value))
    assert (outcome.verdicts, outcome.faults) == ({"slow": "U"}, faults)


def test_unread_signal_is_not_looked_at():
    """A pack sees only what it reads."""
    assert NaiveEngine(pack_of(SLOW)).evaluate(turn(itl_ms=1.0, ttft_ms=math.nan)).faults == []


def test_subnormal_is_zero():
    """A subnormal value is 0.0 before any rule sees it."""
    assert NaiveEngine(pack_of(rule_of("a", over("itl_ms", 0)))).evaluate(turn(itl_ms=5e-324)).verdicts == {"a": "F"}


def test_enum_words():
    """A word outside the list is invalid, a number is no word."""
    spec = build.operand("finish_reason")
    engine = NaiveEngine(pack_of(rule_of("a", build.compare(spec, "==", build.literal(1, "enum", "length")))))
    assert engine.evaluate(turn(finish_reason="length")).matches == ("a",)
    assert engine.evaluate(turn(finish_reason="tired")).faults == [("invalid", "finish_reason")]
    assert engine.evaluate(turn(finish_reason=1.0)).faults == [("type_mismatch", "finish_reason")]


def test_declared_signal_comes_in_extra():
    """A pack's own signal has its own domain."""
    spec = SignalSpec("mood", "ratio", "session", "how it feels", "number", 0.0, 1.0)
    when = build.compare(build.operand("mood", spec), "<", build.literal(0.5, "ratio"))
    engine = NaiveEngine(pack_of(rule_of("low", when), signals=[spec]))
    assert engine.evaluate(turn(extra={"mood": 0.25})).matches == ("low",)
    assert engine.evaluate(turn(extra={"mood": 2.0})).faults == [("invalid", "mood")]


@pytest.mark.parametrize(
    ("name", "limit", "fields", "verdict"),
    [
        ("kv_hit_ratio", 0.4, {"cached_tokens": 50, "input_tokens": 100}, "T"),
        ("kv_hit_ratio", 0.4, {"cached_tokens": 101, "input_tokens": 100}, "U"),
        ("kv_hit_ratio", 0.4, {"cached_tokens": 50, "input_tokens": 100, "kv_hit_ratio": 0.1}, "F"),
        ("kv_hit_ratio", 0.4, {"cached_tokens": 50, "input_tokens": 100, "kv_hit_ratio": math.nan}, "U"),
        ("session_tokens", 100, {"input_tokens": 60, "output_tokens": 60}, "T"),
        ("session_tokens", 100, {"input_tokens": 60}, "U"),
        ("context_usage_ratio", 0.5, {"input_tokens": 60, "context_window_tokens": 100}, "T"),
        ("context_usage_ratio", 0.5, {"input_tokens": 60, "context_window_tokens": 0}, "U"),
        ("context_usage_ratio", 0.5, {"input_tokens": 60, "output_tokens": -1, "context_window_tokens": 100}, "U"),
    ],
)
def test_derived_signal(name, limit, fields, verdict):
    """A signal that was not given is computed from others where they allow it."""
    unit = build.operand(name).unit
    outcome = NaiveEngine(pack_of(rule_of("a", over(name, limit, unit)))).evaluate(turn(**fields))
    assert outcome.verdicts == {"a": verdict}
    assert outcome.faults == ([("invalid", name)] if math.isnan(fields.get(name, 0)) else [])


def test_derived_value_outside_its_domain_is_invalid():
    """A window smaller than a sixteenth of the tokens is no measurement."""
    engine = NaiveEngine(pack_of(rule_of("a", over("context_usage_ratio", 0.5, "ratio"))))
    outcome = engine.evaluate(turn(input_tokens=1700, context_window_tokens=100))
    assert outcome.faults == [("invalid", "context_usage_ratio")]


def test_truncation_is_derived():
    """Fewer tokens than sent, or than on the turn before, unless we trimmed ourselves."""
    engine = NaiveEngine(pack_of(TRUNCATED))
    rows: list[tuple[dict[str, Any], str]] = [
        ({"input_tokens": 100}, "U"),
        ({"input_tokens": 49}, "T"),
        ({"input_tokens": 95}, "F"),
        ({"input_tokens": 40, "applied": Receipt("s", 3, ("trim_context",))}, "U"),
        ({"input_tokens": 19, "applied": Receipt("s", 4, ("throttle",))}, "T"),
        ({"input_tokens": 40, "sent_tokens": 45}, "T"),
        ({"input_tokens": 30, "sent_tokens": 30}, "F"),
        ({}, "U"),
        ({"input_tokens": 10}, "U"),
    ]
    assert [engine.evaluate(turn(**fields)).verdicts["cut"] for fields, _ in rows] == [v for _, v in rows]


def test_unit_is_suspected_once_after_five_turns():
    """A thousandfold change that stays is reported on its fifth turn and then taken as usual."""
    engine = NaiveEngine(pack_of(SLOW))
    values = [0.05] * 3 + [50.0] * 7
    faults = [engine.evaluate(turn(itl_ms=v)).faults for v in values]
    assert faults == [[]] * 7 + [[("unit_suspect", "itl_ms")]] + [[]] * 2


# models and receipts

MEAN = use_fake("m", "fake_mean")
ABOVE = rule_of("above", build.truth(build.output("m.is_above", "bool", "session")))
DELTA = build.call("delta", build.output("m.mean_ms", "ms", "session"))
RISING = rule_of("rising", build.compare(DELTA, ">", build.literal(1, "ms")))


def test_other_model_restarts_its_memory():
    """The detector and the delta over its output are unknown until warm; streaks stay."""
    engine = NaiveEngine(pack_of(ABOVE, RISING, detectors=[MEAN]), detectors=FAKE_TWINS)
    turns = [(10.0, "a"), (20.0, None), (90.0, "b"), (99.0, "b"), (10.0, "a")]
    got = [engine.evaluate(turn(itl_ms=v, model=m)).verdicts for v, m in turns]
    assert ["".join(v.values()) for v in got] == ["UU", "TT", "UU", "TT", "UU"]


def test_receipt_rebases_or_skips():
    """Each detector reacts to a receipt in its own way."""
    engine = NaiveEngine(pack_of(ABOVE, detectors=[MEAN]), detectors=FAKE_TWINS)
    engine.evaluate(turn(itl_ms=10.0))
    skipped = engine.evaluate(turn(itl_ms=20.0, applied=Receipt("s", 1, ("reset_context",))))
    assert skipped.verdicts == {"above": "U"}
    assert engine.evaluate(turn(itl_ms=11.0)).verdicts == {"above": "T"}
    rebased = engine.evaluate(turn(itl_ms=99.0, applied=Receipt("s", 3, ("trim_context",))))
    assert rebased.verdicts == {"above": "U"}
    assert engine.evaluate(turn(itl_ms=98.0)).verdicts == {"above": "F"}


@pytest.mark.parametrize("receipt", [Receipt("other", 1, ("trim_context",)), Receipt("s", 2, ("trim_context",))])
def test_receipt_of_no_decision_is_ignored(receipt):
    """A receipt that belongs to no decision of this session is a fault and changes nothing."""
    engine = NaiveEngine(pack_of(ABOVE, detectors=[MEAN]), detectors=FAKE_TWINS)
    engine.evaluate(turn(itl_ms=10.0))
    outcome = engine.evaluate(turn(itl_ms=20.0, applied=receipt))
    assert (outcome.faults, outcome.verdicts) == ([("receipt_unknown", "")], {"above": "T"})


def test_stale_signal_is_found_through_a_detector():
    """A rule that reads a detector reads the signals behind it."""
    blind = attrs.evolve(ABOVE, hold_limit=1)
    engine = NaiveEngine(pack_of(blind, detectors=[MEAN]), detectors=FAKE_TWINS)
    faults = [engine.evaluate(turn(itl_ms=v)).faults for v in (1.0, None, None)]
    assert faults == [[], [("signal_stale", "itl_ms")], []]  # turn 1 is blind too: one value has no mean before it


# actions


@pytest.mark.parametrize(
    ("wanted", "kept", "lost"),
    [
        (["quantize_kv", "tier_kv", "evict_kv"], ["evict_kv", "tier_kv", "quantize_kv"], []),
        (["insert_summary", "trim_context"], ["trim_context"], [("insert_summary", "trim_context")]),
        (
            ["trim_context", "rollback_snapshot", "reset_context"],
            ["reset_context"],
            [("rollback_snapshot", "reset_context"), ("trim_context", "reset_context")],
        ),
        (
            ["switch_model", "canned_reply", "refuse_new"],
            ["refuse_new"],
            [("canned_reply", "refuse_new"), ("switch_model", "refuse_new")],
        ),
        (
            ["repair_mask", "compensate_positions", "reset_context"],
            ["reset_context"],
            [("compensate_positions", "reset_context"), ("repair_mask", "reset_context")],
        ),
        (["repair_mask", "trim_context"], ["trim_context", "repair_mask"], []),
        (["throttle", "refuse_new", "reset_context"], ["refuse_new", "throttle", "reset_context"], []),
    ],
)
def test_conflict_table(wanted, kept, lost):
    """Per group the best rank stays, whoever asked and in whatever order."""
    for order in (wanted, wanted[::-1]):
        rules = [rule_of(f"r{i}", over("itl_ms", 80), do=(action(name),)) for i, name in enumerate(order)]
        outcome = NaiveEngine(pack_of(*rules)).evaluate(turn(itl_ms=90.0))
        assert [name for name, _ in outcome.actions] == kept
        assert sorted((name, winner) for name, _, winner in outcome.suppressed) == lost


def test_one_name_with_different_parameters():
    """The earlier one wins, by severity first; `many` actions stand beside each other; equal ones merge."""
    first = (action("throttle", max_concurrency=1), action("emit_metric", name="a"))
    second = (action("throttle", max_concurrency=2), action("emit_metric", name="b"), action("emit_metric", name="a"))
    rules = [rule_of("r0", over("itl_ms", 80), do=first, severity="info"), rule_of("r1", over("itl_ms", 80), do=second)]
    outcome = NaiveEngine(pack_of(*rules)).evaluate(turn(itl_ms=90.0))
    metrics = [("emit_metric", {"name": "b"}), ("emit_metric", {"name": "a"})]
    assert outcome.actions == [("throttle", {"max_concurrency": 2}), *metrics]
    assert outcome.suppressed == [("throttle", {"max_concurrency": 1}, "throttle")]


def test_actions_of_states():
    """`do` goes out on entry, `while` on every turn that ends there; the state left gives nothing."""
    states = [
        State("healthy", (action("throttle"),), (action("repair_mask"),)),
        State("broken", (action("resync_clock"),), (action("switch_model"),)),
    ]
    engine = NaiveEngine(pack_of(SLOW, states=states, transitions=[transition("healthy", "broken", build.at_least(1))]))
    names = [[name for name, _ in engine.evaluate(turn(itl_ms=v)).actions] for v in (70.0, 90.0, 70.0)]
    assert names == [["repair_mask"], ["switch_model", "resync_clock"], ["switch_model"]]


# the other verbs


def test_peek_stores_nothing():
    """What a peek says comes true, and a session that was only peeked at does not exist."""
    engine = NaiveEngine(pack_of(rule_of("slow", over("itl_ms", 80), for_turns=2)))
    engine.peek(turn(itl_ms=90.0))
    assert not engine.sessions
    first = engine.evaluate(turn(turn_id=1, itl_ms=90.0))
    seen = engine.peek(turn(itl_ms=90.0))
    assert seen.matches == ("slow",)
    assert engine.evaluate(turn(turn_id=1, itl_ms=90.0)) is first
    assert engine.evaluate(turn(itl_ms=90.0)) == seen


def test_fork_and_forget():
    """A fork goes on from where it stands, alone; a forgotten session starts afresh."""
    engine = NaiveEngine(pack_of(rule_of("slow", over("itl_ms", 80), for_turns=2)))
    engine.evaluate(turn(itl_ms=90.0))
    engine.fork("s", "s2")
    assert engine.evaluate(Turn(session_id="s2", itl_ms=90.0)).matches == ("slow",)
    assert engine.forget("s")
    assert not engine.forget("s")
    assert engine.evaluate(turn(itl_ms=90.0)).matches == ()
    with pytest.raises(UsageError):
        engine.fork("nobody", "s3")


def test_tenants_never_meet():
    """Two tenants may use one session id."""
    engine = NaiveEngine(pack_of(rule_of("slow", over("itl_ms", 80), for_turns=2)))
    engine.evaluate(turn(itl_ms=90.0, tenant="t1"))
    assert engine.evaluate(turn(itl_ms=90.0, tenant="t2")).matches == ()
