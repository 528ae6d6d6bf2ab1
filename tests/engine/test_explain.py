"""Reasons, text and JSON: every number is the true one, and every counterfactual holds when it is tried."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import attrs
import pytest

from stabilitykit.engine.explain import reason_line, shown
from stabilitykit.signals import CATALOGUE
from tests.engines import VECTORS, Turn, breaker, engine_of, play, vector_engine
from tests.naive import build
from tests.naive.engine import NaiveEngine
from tests.naive.fakes import FAKE_TWINS, FAKES
from tests.naive.random_packs import random_pack
from tests.naive.random_turns import CLEAN, Observation, random_stream
from tests.naive.small import over, pack_of, rule_of

PACKS, LENGTH = 70, 60
CHANGE = re.compile(r"(\w+) (==|!=|<=|>=|<|>) (\S+)( \S+)?")
SMALLEST = 2.2250738585072014e-308
HOLDS = {
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def beside(value, direction):
    """Give the next number that is not taken for zero."""
    found = math.nextafter(value, direction * math.inf)
    return found if abs(found) >= SMALLEST else direction * SMALLEST


def changed(turn, counterfactual, pack):
    """Give the turn with the one signal changed as the reason says; None where it is not a session's signal."""
    found = CHANGE.fullmatch(counterfactual)
    spec = {**CATALOGUE, **pack.signals}.get(found[1]) if found else None
    if spec is None or spec.scope != "session":
        return None
    assert found
    value: Any = found[3]
    if spec.kind == "bool":
        value = value == "true"
    elif spec.kind == "enum":
        value = value if found[2] == "==" else next(v for v in spec.values if v != value)
    else:
        value = float(value)
        value = {"<": beside(value, -1.0), ">": beside(value, 1.0)}.get(found[2], value)
    if spec.name in pack.signals:
        return attrs.evolve(turn, extra={**(turn.extra or {}), spec.name: value})
    return attrs.evolve(turn, **{spec.name: value})


def streak_of(oracle, turn, rule):
    """Give the oracle's streak or hits of a session's rule."""
    memory = oracle.sessions[turn.tenant, turn.session_id].instance.rules[rule.id]
    if rule.count:
        return sum(memory.history[-rule.count[1] :])
    return min(memory.streak, 255)


def check_numbers(reason):
    """Value, threshold and margin belong together."""
    if math.isnan(reason.value) or math.isnan(reason.threshold):
        assert math.isnan(reason.margin)
        return
    holds = HOLDS[reason.op](reason.value, reason.threshold)
    assert abs(reason.margin) == abs(reason.value - reason.threshold)
    assert math.copysign(1.0, reason.margin) == (1.0 if holds else -1.0) or reason.margin == 0.0


@pytest.mark.capability("issue 2 §5: a counterfactual holds: with that one signal changed the rule does not match")
def test_random_packs():
    """Random packs and turns: each stated change makes the rule not match; streaks are the oracle's."""
    tried = streaks = 0
    for seed in range(PACKS):
        pack = random_pack(7_000 + seed, detectors=FAKES)
        engine, oracle = engine_of(pack), NaiveEngine(pack, detectors=FAKE_TWINS)
        for entry in random_stream(pack, seed, LENGTH, modes=CLEAN).entries:
            if isinstance(entry, Observation):
                engine.observe(**entry.arguments)
                oracle.observe(**entry.arguments)
                continue
            foreseen = engine.peek(entry)
            alternatives = []
            is_new = not {f.kind for f in foreseen.faults} & {"stale", "turn_conflict"} and foreseen is not engine.peek(
                entry
            )
            for reason in foreseen.reasons if is_new else ():
                other = changed(entry, reason.counterfactual, pack) if reason.scope == "session" else None
                if other is not None:
                    alternatives.append((reason, engine.peek(other)))
            decision = engine.evaluate(entry)
            oracle.evaluate(entry)
            for reason, other in alternatives:
                told = f"pack {pack.name}, {entry}, {reason}"
                assert reason.rule not in {m.rule for m in other.matches}, told
                tried += 1
            if {f.kind for f in decision.faults} & {"stale", "turn_conflict"}:
                continue
            for reason in decision.reasons:
                check_numbers(reason)
                if reason.scope == "session":
                    assert reason.streak == streak_of(oracle, entry, pack.rule(reason.rule)), (pack.name, entry, reason)
                    streaks += 1
    assert tried > 150
    assert streaks > 1_000


def strict(value):
    """Refuse NaN and infinities, which are no JSON."""
    raise AssertionError(value)


@pytest.mark.capability("issue 2 §5: to_dict() is JSON and survives the way there and back")
def test_json():
    """Random packs with every kind of bad input: valid JSON, no NaN, nothing lost."""
    for seed in range(20):
        pack = random_pack(seed, detectors=FAKES)
        engine = engine_of(pack)
        for entry in random_stream(pack, seed, LENGTH).entries:
            decision = engine.observe(**entry.arguments) if isinstance(entry, Observation) else engine.evaluate(entry)
            said = decision.to_dict()
            assert json.loads(json.dumps(said, allow_nan=False), parse_constant=strict) == said
            text = decision.explain()
            assert text.count("would not match if") == sum(bool(r.counterfactual) for r in decision.reasons)
            assert all(f"{r.severity} {r.rule}" in text for r in decision.reasons)
            assert [r.rule for r in decision.reasons] == [
                m["rule"]
                for m in sorted(said["matches"], key=lambda m: ["critical", "warning", "info"].index(m["severity"]))
            ]


@pytest.mark.capability("issue 2 §5: explain(): rule, value, threshold, margin, streak n/N, counterfactual")
def test_text():
    """The whole text of one decision."""
    engine = breaker()
    play(engine, [90.0])
    assert engine.evaluate(Turn(session_id="a", turn_id=4, itl_ms=92.5)).explain() == (
        "turn 4: session is broken (was healthy)\n"
        "  critical slow fired: itl_ms = 92.5 ms > 80 ms, margin 12.5 ms, 2/2\n"
        "    would not match if itl_ms <= 80 ms\n"
        "  do throttle(max_concurrency=1)  []\n"
        "  fault turn_gap 2 missing"
    )
    assert engine.evaluate(Turn(session_id="a", itl_ms=1.0)).explain() == "turn 5: session is broken"


def only(rule, engine_turns):
    """Give the counterfactual of a rule after some turns."""
    engine = engine_of(pack_of(rule))
    decisions = [engine.evaluate(Turn(session_id="a", **signals)) for signals in engine_turns]
    return [r.counterfactual for r in decisions[-1].reasons]


def test_counterfactuals_of_each_kind():
    """Numbers, words, booleans; the nearest one; none where memory or the domain forbids it."""
    slow = over("itl_ms", 80.0)
    finish = build.compare(build.operand("finish_reason"), "==", build.literal(3.0, "enum", "content_filter"))
    cut = build.truth(build.operand("is_history_truncated"))
    jump = build.compare(build.call("delta", build.operand("itl_ms")), ">", build.literal(5.0, "ms"))
    low = build.compare(build.operand("kv_hit_ratio"), ">=", build.literal(0.0, "ratio"))
    awkward = over("itl_ms", 80.123456789)
    assert only(rule_of("r", slow), [{"itl_ms": 90.0}]) == ["itl_ms <= 80 ms"]
    assert only(
        rule_of("r", build.compare(build.operand("itl_ms"), ">=", build.literal(80.0, "ms"))), [{"itl_ms": 90.0}]
    ) == ["itl_ms < 80 ms"]
    assert only(rule_of("r", awkward), [{"itl_ms": 90.0}]) == ["itl_ms <= 80.123456789 ms"]  # rounded it would match
    assert only(rule_of("r", over("itl_ms", 80.123416789)), [{"itl_ms": 90.0}]) == ["itl_ms <= 80.1234 ms"]
    assert only(rule_of("r", finish), [{"finish_reason": "content_filter"}]) == ["finish_reason != content_filter"]
    assert only(rule_of("r", cut), [{"is_history_truncated": True}]) == ["is_history_truncated == false"]
    assert only(rule_of("r", build.either(slow, jump)), [{"itl_ms": 80.0}, {"itl_ms": 90.0}]) == [""]
    assert only(rule_of("r", build.both(slow, jump)), [{"itl_ms": 80.0}, {"itl_ms": 90.0}]) == ["itl_ms <= 80 ms"]
    assert only(rule_of("r", low), [{"kv_hit_ratio": 0.5}]) == [""]


def test_a_change_that_a_detector_would_see_too(tmp_path):
    """What depends on a detector's answer to the other value says so."""
    engine = vector_engine(tmp_path)
    play(engine, [30.0] * 5 + [300.0])
    (reason,) = engine.evaluate(Turn(session_id="a", itl_ms=300.0)).reasons
    assert (reason.rule, reason.counterfactual) == ("slow-now", "itl_ms <= 80 ms")
    text = VECTORS.replace("slow.is_over and itl_ms > 80 ms", "itl_ms > 2 * slow.baseline_ms")
    engine = vector_engine(tmp_path, text)
    play(engine, [30.0] * 5 + [300.0])
    (reason,) = engine.evaluate(Turn(session_id="a", itl_ms=300.0)).reasons
    assert re.fullmatch(r"itl_ms <= \S+ ms, slow as on this turn", reason.counterfactual)


def test_no_counterfactual_where_the_rule_would_stay():
    """Kept matches and hits enough: this turn's value alone would not have changed it."""
    slow, values = over("itl_ms", 80.0), [{"itl_ms": v} for v in (90.0, 90.0, 70.0, 90.0)]
    assert only(rule_of("r", slow, for_turns=2, keep_for=2), values) == [""]
    assert only(rule_of("r", slow, count=(2, 4)), values) == [""]
    assert only(rule_of("r", slow, count=(3, 4)), values) == ["itl_ms <= 80 ms"]


def test_words_and_units():
    """A value is shown with its unit, an enum as its word, what is unknown as unknown."""
    assert shown(3.0, "enum", "finish_reason") == "content_filter"
    assert shown(1.0, "bool") == "true"
    assert shown(0.25, "ratio") == "0.25"
    assert shown(12.5, "ms") == "12.5 ms"
    assert shown(math.nan, "ms") == "unknown"


def test_a_held_match_says_so(tmp_path):
    """Unknown since: the reason tells that the match is kept from before, in every format."""
    engine = breaker(turns=1)
    play(engine, [90.0])
    decision = engine.evaluate(Turn(session_id="a"))
    (reason,) = decision.reasons
    assert reason_line(reason) == "itl_ms unknown, kept from before"
    assert (decision.to_dict()["reasons"][0]["value"], reason.counterfactual) == (None, "")
    far = vector_engine(tmp_path)
    for vector in ([1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]):
        decision = far.evaluate(Turn(session_id=b"\xff", embedding=vector))
    assert [r.text for r in decision.reasons] == ["1.0"]
    assert (decision.to_dict()["id"], decision.to_dict()["tenant"]) == ("ff", "")
