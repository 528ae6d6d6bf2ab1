"""What the gate remembers belongs to one conversation of one tenant; the middleware's tests show the rest."""

from __future__ import annotations

import math

import pytest

from stabilitykit import Engine, Turn
from stabilitykit.errors import UsageError
from stabilitykit.integrations.gate import Gate
from tests.integrations.decisions import asking, slow


@pytest.mark.capability("issue 5 §6: what a decision asks for reaches no session of the same id of another tenant")
def test_two_tenants(tmp_path):
    """One tenant's session is switched and throttled; the other's of its name is not."""
    actions = "{switch_model: {to: light}}", "{throttle: {max_concurrency: 1}}"
    gate, engine = Gate(), asking(tmp_path, *actions)
    gate.note(slow(engine, "c-1", tenant="one"))
    gate.note(engine.evaluate(Turn(session_id="c-1", tenant="two", itl_ms=10.0)))
    assert [gate.model("c-1", "big", tenant=tenant) for tenant in ("one", "two", "")] == ["light", "big", "big"]
    busy = [gate.enter("c-1", tenant=tenant) for tenant in ("one", "one", "two", "two")]
    assert [admission.retry_after_s for admission in busy] == [None, 1.0, None, None]
    assert [admission.model for admission in busy] == ["light", None, None, None]
    gate.leave("c-1", tenant="two")
    assert gate.enter("c-1", tenant="one").retry_after_s == 1.0
    gate.leave("c-1", tenant="one")
    assert gate.enter("c-1", tenant="one").retry_after_s is None


REPLICA = """\
stabilitykit: 1
pack: full
machine: {initial: healthy, states: [{state: healthy}], transitions: []}
rules:
  - rule: full
    when: kv_usage_ratio > 90 %
    keep_for: 2 samples
    cooldown: 20 samples
    do: [{throttle: {max_concurrency: 1}}]
    tags: [sandbox]
"""


@pytest.mark.capability("issue 5 §6: throttle of a replica holds for each conversation as long as a rule matches there")
def test_throttle_of_a_replica(tmp_path):
    """It asks once and cools down; conversations wait from then on until nothing matches any more."""
    (tmp_path / "full.yaml").write_text(REPLICA, encoding="utf-8")
    gate, engine = Gate(), Engine.load(str(tmp_path / "full.yaml"))
    waits = []
    for k, usage in enumerate((0.5, 0.95, 0.95, 0.5, 0.5, 0.5)):
        gate.note(engine.observe(replica="r-1", timestamp_s=float(k), kv_usage_ratio=usage))
        gate.note(engine.observe(replica="r-2", timestamp_s=float(k), kv_usage_ratio=0.5))
        assert gate.enter("c-1").retry_after_s is None
        waits.append(gate.enter("c-1").retry_after_s)
        gate.leave("c-1")
        if waits[-1] is None:
            gate.leave("c-1")
    assert waits == [None, 1.0, 1.0, 1.0, 1.0, None]


def test_a_replica_that_is_gone_limits_nobody(tmp_path):
    """Nothing comes of it any more that could lift its limit; after five minutes of silence it is lifted."""
    (tmp_path / "full.yaml").write_text(REPLICA, encoding="utf-8")
    now = [100.0]
    gate, engine = Gate(clock=lambda: now[0]), Engine.load(str(tmp_path / "full.yaml"))
    for k, usage in enumerate((0.5, 0.95)):
        gate.note(engine.observe(replica="r-1", timestamp_s=float(k), kv_usage_ratio=usage))
    assert gate.enter("c-1").retry_after_s is None
    now[0] += 300.0
    assert gate.enter("c-1").retry_after_s == 1.0
    now[0] += 0.5
    assert gate.enter("c-1").retry_after_s is None


def test_throttle_of_a_rule_holds_while_it_matches(tmp_path):
    """The rule cools down after it has asked; the limit goes with the first turn on which it does not match."""
    gate, engine = Gate(), asking(tmp_path, "{throttle: {max_concurrency: 1}}")
    waits = []
    for itl_ms in (10.0, 100.0, 100.0, 100.0, 10.0, 10.0):
        gate.note(engine.evaluate(Turn(session_id="c-1", itl_ms=itl_ms)))
        first, second = gate.enter("c-1"), gate.enter("c-1")
        waits.append(second.retry_after_s)
        assert (first.retry_after_s, first.state) == (None, "" if second.retry_after_s is None else "healthy")
        for _ in range(1 + (second.retry_after_s is None)):
            gate.leave("c-1")
    assert waits == [None, 1.0, 1.0, 1.0, None, None]


def test_a_canned_reply_of_one_tenant(tmp_path):
    """The other tenant's session of that name has no prepared text and is not degraded."""
    gate, engine = Gate(), asking(tmp_path, "{canned_reply: {name: sorry}}")
    gate.note(slow(engine, "c-1", tenant="one"))
    assert gate.enter("c-1", tenant="two").canned is None
    assert (gate.take_canned("c-1", tenant="two"), gate.state("c-1", tenant="two")) == (None, "")
    assert (gate.take_canned("c-1", tenant="one"), gate.state("c-1", tenant="one")) == ("sorry", "healthy")


@pytest.mark.parametrize(
    ("asked", "is_degraded"),
    [
        ("{throttle: {max_concurrency: 2}}", True), ("{switch_model: {to: light}}", True), ("{trim_context: {}}", True),
        ("{refuse_new: {}}", True), ("{emit_metric: {}}", False), ("{inject_state_tokens: {}}", False),
    ],
)  # fmt: skip
def test_what_degrades(tmp_path, asked, is_degraded):
    """The reply of an admitted request says so where its user gets less, or later, than usual."""
    gate = Gate()
    gate.note(slow(asking(tmp_path, asked)))
    assert gate.enter("c-1").state == gate.state("c-1") == ("healthy" if is_degraded else "")


@pytest.mark.parametrize(
    "wrong", [{"capacity": 0}, {"capacity": math.nan}, {"busy_retry_s": math.nan}, {"busy_retry_s": -1}]
)
def test_settings_that_cannot_be(wrong):
    """They are refused at once, not when the first request is."""
    with pytest.raises(UsageError):
        Gate(**wrong)


def test_a_clock_that_goes_back(tmp_path):
    """A refusal lasts as long as was asked, whatever the clock says: back by a day it is not a day longer."""
    now = [100_000.0]
    gate = Gate(clock=lambda: now[0])
    gate.note(slow(asking(tmp_path, "{refuse_new: {retry_after_s: 30 s}}")))
    now[0] += 10.0
    assert gate.enter("new").retry_after_s == 20.0
    now[0] -= 86_400.0
    assert gate.enter("new").retry_after_s == 20.0
    now[0] += 20.0
    assert gate.enter("new").retry_after_s is None


@pytest.mark.parametrize("clock", [lambda: math.nan, lambda: math.inf, lambda: 1 / 0, lambda: None])
def test_a_clock_that_fails(tmp_path, clock):
    """No decision and no request meets its exception, and nobody is refused for ever."""
    gate = Gate(clock=clock)
    gate.note(slow(asking(tmp_path, "{refuse_new: {retry_after_s: 30 s}}")))
    assert gate.enter("new").retry_after_s is None


def test_what_is_no_decision(caplog):
    """It is told in the log."""
    Gate().note(None)  # type: ignore[arg-type]
    assert "telemetry_failed" in caplog.text
