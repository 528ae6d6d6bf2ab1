"""Replicas and devices: samples, what a turn reads of them, their rules and machines."""

from __future__ import annotations

import pytest

from stabilitykit.errors import UnknownSignal, UsageError
from stabilitykit.rules.pack import State
from stabilitykit.turn import MISSING, Turn
from tests.naive import build
from tests.naive.engine import NaiveEngine
from tests.naive.fakes import FAKE_TWINS
from tests.naive.small import action, over, pack_of, rule_of, transition, use_fake

KV = build.operand("kv_usage_ratio")
FULL = rule_of("full", over("kv_usage_ratio", 0.5, "ratio"))
HOT = rule_of("hot", over("gpu_temperature_c", 80, "C"))
SLOW = rule_of("slow", over("itl_ms", 80))
STRAINED = rule_of("strained", build.both(over("itl_ms", 80), over("kv_usage_ratio", 0.5, "ratio")))
BREAKS = (transition("healthy", "broken", build.at_least(1)),)


def turn(session="s", **fields):
    """Give a turn of a session."""
    return Turn(session_id=session, **fields)


def test_scope_is_the_narrowest_that_is_read():
    """A rule that reads a session's and a replica's signal is the session's."""
    assert [r.scope for r in (FULL, HOT, SLOW, STRAINED)] == ["replica", "device", "session", "session"]


def test_replica_rule_moves_once_per_sample():
    """Turns with the same sample read it; only a newer one moves streaks and machine."""
    engine = NaiveEngine(pack_of(rule_of("full", FULL.when, for_turns=2), transitions=BREAKS))
    times = (1.0, 1.0, 0.5, 2.0)
    outcomes = [engine.evaluate(turn(kv_usage_ratio=0.9, replica_sample_s=at)) for at in times]
    assert [o.scopes["replica"] for o in outcomes] == ["healthy", "healthy", "healthy", "broken"]
    assert outcomes[-1].state == "healthy"  # a replica's rule cannot break a session
    assert outcomes[-1].wider_fired == {"replica": ("full",)}


def test_observed_replica_ignores_untimed_values_of_turns():
    """Once somebody observes a replica, only timed samples of turns count."""
    engine = NaiveEngine(pack_of(FULL, STRAINED))
    assert engine.evaluate(turn(kv_usage_ratio=0.9, itl_ms=90.0)).matches == ("strained",)
    engine.observe(kv_usage_ratio=0.1, timestamp_s=5.0)
    assert engine.evaluate(turn(kv_usage_ratio=0.9, itl_ms=90.0)).verdicts == {"strained": "F"}
    assert engine.evaluate(turn(kv_usage_ratio=0.9, itl_ms=90.0, replica_sample_s=6.0)).verdicts == {
        "full": "T",
        "strained": "T",
    }


def test_timed_sample_of_a_turn_counts_as_observed():
    """After one timed sample a turn that does not say when it measured only reads."""
    engine = NaiveEngine(pack_of(FULL))
    engine.evaluate(turn(kv_usage_ratio=0.9, replica_sample_s=1.0))
    assert engine.evaluate(turn(kv_usage_ratio=0.1)).wider_matches == {"replica": ("full",)}


def test_invalid_value_makes_a_sample_a_missing_one_does_not():
    """A sample that brings only rubbish is a blind sample; a turn without the signal is none."""
    engine = NaiveEngine(pack_of(rule_of("full", FULL.when, on_missing="fire")))
    assert engine.evaluate(turn()).verdicts == {}
    outcome = engine.evaluate(turn(kv_usage_ratio=7.0))
    assert (outcome.verdicts, outcome.faults) == ({"full": "U"}, [("invalid", "kv_usage_ratio")])
    assert outcome.wider_matches == {"replica": ("full",)}


def test_observe_answers_for_its_scope():
    """The answer to a sample is about the replica, and its `do` goes out with it."""
    rule = rule_of("full", FULL.when, do=(action("throttle"),))
    states = [State("healthy"), State("broken", (action("resync_clock"),), (action("switch_model"),))]
    engine = NaiveEngine(pack_of(rule, SLOW, states=states, transitions=BREAKS))
    outcome = engine.observe(kv_usage_ratio=0.9, timestamp_s=1.0)
    assert (outcome.state, outcome.previous) == ("broken", "healthy")
    assert (outcome.matches, outcome.fired) == (("full",), ("full",))
    assert [name for name, _ in outcome.actions] == ["throttle", "resync_clock"]
    served = engine.evaluate(turn(itl_ms=1.0))
    assert (served.state, [name for name, _ in served.actions]) == ("healthy", ["switch_model"])
    assert [name for name, _ in engine.evaluate(turn(replica="r2")).actions] == []


def test_late_observation_is_stale():
    """The same or an older time moves nothing."""
    engine = NaiveEngine(pack_of(FULL))
    engine.observe(kv_usage_ratio=0.9, timestamp_s=5.0)
    for at in (5.0, 4.0):
        late = engine.observe(kv_usage_ratio=0.1, timestamp_s=at)
        assert (late.faults, late.matches, late.verdicts) == ([("stale", "")], (), {})
    assert engine.evaluate(turn()).wider_matches == {"replica": ("full",)}


@pytest.mark.parametrize(
    ("now", "ttl", "verdict"),
    [(65.0, 60.0, "T"), (65.1, 60.0, "U"), (MISSING, 60.0, "T"), (1e9, None, "T")],
)
def test_sample_expires(now, ttl, verdict):
    """A sample older than the limit is unknown; without times it never is."""
    engine = NaiveEngine(pack_of(STRAINED), sample_ttl=ttl)
    engine.observe(kv_usage_ratio=0.9, timestamp_s=5.0)
    assert engine.evaluate(turn(itl_ms=90.0, timestamp_s=now)).verdicts == {"strained": verdict}


def test_expired_window_is_unknown_and_level_stays():
    """Memory over expired signals is unknown; the level of a replica's rule stays as it was."""
    mean = build.compare(build.window("mean", KV, 2), ">", build.literal(0.5, "ratio"))
    windowed = rule_of("windowed", build.both(mean, over("itl_ms", 80)))
    level = rule_of("level", build.both(build.reference("full", "replica"), over("itl_ms", 80)))
    engine = NaiveEngine(pack_of(FULL, windowed, level))
    engine.observe(kv_usage_ratio=0.9, timestamp_s=1.0)
    engine.observe(kv_usage_ratio=0.8, timestamp_s=2.0)
    assert engine.evaluate(turn(itl_ms=90.0, timestamp_s=3.0)).verdicts == {"windowed": "T", "level": "T"}
    assert engine.evaluate(turn(itl_ms=90.0, timestamp_s=99.0)).verdicts == {"windowed": "U", "level": "T"}


def test_window_of_a_replica_inside_a_session_rule_moves_per_sample():
    """Turns do not move it, and sessions of one replica share it."""
    delta = build.compare(build.call("delta", KV), ">", build.literal(0.25, "ratio"))
    engine = NaiveEngine(pack_of(rule_of("jump", build.both(delta, over("itl_ms", 80)))))
    engine.observe(kv_usage_ratio=0.25)
    assert engine.evaluate(turn(itl_ms=90.0)).verdicts == {"jump": "U"}
    engine.observe(kv_usage_ratio=0.75)
    verdicts = [engine.evaluate(turn(session, itl_ms=90.0)).verdicts["jump"] for session in ("s", "s", "s2")]
    assert verdicts == ["T", "T", "T"]


def test_never_sampled_replica_is_unknown():
    """Signals, windows and levels of a replica that nobody measured are unknown."""
    level = rule_of("level", build.either(build.reference("full", "replica"), over("itl_ms", 80)))
    engine = NaiveEngine(pack_of(FULL, level))
    assert engine.evaluate(turn(itl_ms=1.0)).verdicts == {"level": "U"}


def test_guard_on_a_rule_of_another_scope_has_an_empty_range():
    """`rule:id` of a replica's rule never moves a session's machine."""
    machine = [transition("healthy", "broken", build.reference("full"))]
    engine = NaiveEngine(pack_of(FULL, SLOW, transitions=machine))
    outcome = engine.evaluate(turn(kv_usage_ratio=0.9, itl_ms=1.0))
    assert (outcome.state, outcome.scopes) == ("healthy", {"replica": "broken"})


def test_device_moves_before_its_replicas():
    """One turn can complete a sample of both; a replica's rule may read the device's level."""
    strained = rule_of("strained", build.both(build.reference("hot", "device"), FULL.when))
    engine = NaiveEngine(pack_of(HOT, strained))
    outcome = engine.evaluate(turn(gpu_temperature_c=90.0, kv_usage_ratio=0.9))
    assert outcome.verdicts == {"hot": "T", "strained": "T"}
    assert outcome.wider_fired == {"replica": ("strained",), "device": ("hot",)}


def test_order_of_wider_actions():
    """Session rules, then replica rules, then device rules, whatever their severity: the earlier one wins."""
    rules = [
        rule_of("hot", HOT.when, severity="critical", do=(action("throttle", max_concurrency=3),)),
        rule_of("full", FULL.when, severity="critical", do=(action("throttle", max_concurrency=2),)),
        rule_of("slow", SLOW.when, severity="info", do=(action("throttle", max_concurrency=1),)),
    ]
    outcome = NaiveEngine(pack_of(*rules)).evaluate(turn(itl_ms=90.0, kv_usage_ratio=0.9, gpu_temperature_c=90.0))
    assert outcome.actions == [("throttle", {"max_concurrency": 1})]
    assert [params["max_concurrency"] for _, params, _ in outcome.suppressed] == [2, 3]


def test_widened_detector_takes_every_turn_and_no_observation():
    """It is shared by the sessions of a replica and does not wait for samples."""
    peak = use_fake("p", "fake_peak", "replica", widened=True)
    output = build.output("p.peak_ms", "ms", "replica")
    below = rule_of("below", build.compare(build.operand("ttft_ms"), "<", output))
    high = rule_of("high", build.both(build.compare(output, ">", build.literal(80, "ms")), FULL.when))
    engine = NaiveEngine(pack_of(below, high, detectors=[peak]), detectors=FAKE_TWINS)
    got = [engine.evaluate(turn(s, ttft_ms=v)).verdicts for s, v in (("a", 50.0), ("b", 40.0), ("a", 90.0))]
    assert got == [{"below": "F"}, {"below": "T"}, {"below": "F"}]
    assert engine.observe(kv_usage_ratio=0.9).verdicts == {"high": "T"}
    sample = engine.evaluate(turn("b", ttft_ms=10.0, kv_usage_ratio=0.1, replica_sample_s=1.0))
    assert sample.verdicts == {"below": "T", "high": "F"}


def test_observe_refuses_what_is_no_sample():
    """A session's signal belongs to a turn; an unknown name is misuse."""
    engine = NaiveEngine(pack_of(FULL, SLOW))
    with pytest.raises(UsageError):
        engine.observe(itl_ms=90.0)
    with pytest.raises(UnknownSignal):
        engine.observe(no_such=1.0)
    assert not engine.wider


def test_replicas_of_tenants_are_apart():
    """The default replica, like any other, belongs to one tenant."""
    engine = NaiveEngine(pack_of(STRAINED))
    engine.observe(kv_usage_ratio=0.9, tenant="t1")
    assert engine.evaluate(turn(itl_ms=90.0, tenant="t1")).matches == ("strained",)
    assert engine.evaluate(turn(itl_ms=90.0)).matches == ()


def test_widened_detector_moves_once_on_a_turn_that_is_a_sample():
    """It takes the turn as a turn, and not again as a sample."""
    mean = use_fake("m", "fake_mean", "replica", widened=True)
    above = rule_of("above", build.both(build.truth(build.output("m.is_above", "bool", "replica")), FULL.when))
    engine = NaiveEngine(pack_of(above, detectors=[mean]), detectors=FAKE_TWINS)
    verdicts = [engine.evaluate(turn(itl_ms=v, kv_usage_ratio=0.9)).verdicts["above"] for v in (10.0, 20.0, 15.0)]
    assert verdicts == ["U", "T", "F"]
