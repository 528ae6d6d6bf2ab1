"""Replicas and devices: samples by `observe` and on turns, their age, their order, their names."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest

from stabilitykit import Fault, UsageError
from stabilitykit.engine.observing import Scopes, moment
from stabilitykit.errors import TurnError, UnknownSignal
from stabilitykit.turn import MISSING
from tests.engines import Turn, breaker, engine_of, vector_engine
from tests.naive import build
from tests.naive.small import BREAKER, action, pack_of, rule_of


def above(name, limit, unit="ratio"):
    """Write ``name > limit``."""
    return build.compare(build.operand(name), ">", build.literal(limit, unit))


@pytest.fixture
def engine():
    """Give an engine with a replica rule, a device rule and a session rule that reads the replica's."""
    return engine_of(
        pack_of(
            rule_of("full", above("kv_usage_ratio", 0.5), severity="critical", do=(action("evict_kv"),)),
            rule_of("hot", above("gpu_temperature_c", 90.0, "C"), severity="critical", do=(action("lower_clocks"),)),
            rule_of(
                "crowded",
                build.both(build.reference("full", "replica"), above("itl_ms", 80.0, "ms")),
                severity="critical",
            ),
            transitions=BREAKER,
        )
    )


def ids(decision):
    """Name the rules that match."""
    return [m.rule for m in decision.matches]


@pytest.mark.capability("issue 2 §2: scopes: a replica's trouble is not the session's")
def test_scopes(engine):
    """A replica breaks alone; a session only when a rule of its own reads that."""
    seen = engine.observe(replica="r", timestamp_s=1.0, kv_usage_ratio=0.9)
    assert (seen.scope, seen.session_id, seen.state, ids(seen)) == ("replica", "r", "broken", ["full"])
    assert [a.name for a in seen.actions] == ["evict_kv"]
    calm = engine.evaluate(Turn(session_id="a", replica="r", timestamp_s=2.0, itl_ms=10.0))
    assert (calm.state, dict(calm.scopes)) == ("healthy", {"replica": "broken", "device": "healthy"})
    assert engine.evaluate(Turn(session_id="a", replica="other", timestamp_s=3.0, itl_ms=90.0)).state == "healthy"
    assert engine.evaluate(Turn(session_id="a", replica="r", timestamp_s=4.0, itl_ms=90.0)).state == "broken"


@pytest.mark.capability("issue 2 §2: observe takes samples; the same or an older time is stale")
def test_observe_order(engine):
    """Time orders samples; one without a time is always taken; a late one moves nothing."""
    assert engine.observe(replica="r", timestamp_s=5.0, kv_usage_ratio=0.9).state == "broken"
    for late in (5.0, 4.0, -1.0):
        got = engine.observe(replica="r", timestamp_s=late, kv_usage_ratio=0.1)
        assert (got.faults, got.state, ids(got)) == ((Fault("stale"),), "broken", ["full"])
        assert (got.fired, got.actions) == ((), ())
    assert ids(engine.observe(replica="r", kv_usage_ratio=0.8)) == ["full"]
    assert ids(engine.observe(replica="r", timestamp_s=5.1, kv_usage_ratio=0.1)) == []


def test_observe_of_both(engine):
    """Signals of both scopes: the device moves first, the answer is the replica's with both's actions."""
    got = engine.observe(replica="r", device="g", kv_usage_ratio=0.9, gpu_temperature_c=95.0)
    assert (got.scope, got.session_id, ids(got)) == ("replica", "r", ["full", "hot"])
    assert dict(got.scopes) == {"replica": "broken", "device": "broken"}
    assert [a.name for a in got.actions] == ["evict_kv", "lower_clocks"]


@pytest.mark.capability("issue 2 §2: a turn may bring a sample; one that is not newer is not looked at")
def test_samples_on_turns(engine):
    """A newer `replica_sample_s` moves the replica once, whoever brings it; a bad old value is no fault."""
    first = engine.evaluate(Turn(session_id="a", replica="r", kv_usage_ratio=0.9, replica_sample_s=1.0))
    again = engine.evaluate(Turn(session_id="b", replica="r", kv_usage_ratio=0.1, replica_sample_s=1.0))
    wrong = engine.evaluate(Turn(session_id="b", replica="r", kv_usage_ratio=-1.0, replica_sample_s=1.0))
    newer = engine.evaluate(Turn(session_id="b", replica="r", kv_usage_ratio=0.1, replica_sample_s=2.0))
    assert [ids(d) for d in (first, again, wrong, newer)] == [["full"], ["full"], ["full"], []]
    assert [a.name for a in first.actions] == ["evict_kv"]
    assert again.actions == wrong.actions == wrong.faults == ()


def test_a_turn_without_time_is_no_sample_of_an_observed_replica(engine):
    """Once somebody scrapes a replica, what turns say of it without a time is not looked at."""
    assert ids(engine.evaluate(Turn(session_id="a", kv_usage_ratio=0.9))) == ["full"]
    assert ids(engine.evaluate(Turn(session_id="a", kv_usage_ratio=0.1))) == []
    engine.observe(timestamp_s=1.0, kv_usage_ratio=0.9)
    assert ids(engine.evaluate(Turn(session_id="a", kv_usage_ratio=0.1))) == ["full"]


@pytest.mark.capability("issue 2 §2: a sample older than sample_ttl is not read")
def test_sample_ttl():
    """Signals of an old sample are unknown; the levels of the replica's rules stay."""
    rule = rule_of("waits", above("waiting_requests", 2.0, "count"))
    beside = rule_of(
        "both", build.both(above("waiting_requests", 2.0, "count"), above("itl_ms", 1.0, "ms")), on_missing="skip"
    )
    for ttl, want in ((60.0, ["waits"]), (None, ["both", "waits"]), (1e9, ["both", "waits"])):
        engine = engine_of(pack_of(rule, beside), sample_ttl_s=ttl)
        engine.observe(timestamp_s=0.0, waiting_requests=9)
        assert sorted(ids(engine.evaluate(Turn(session_id="a", itl_ms=5.0, timestamp_s=60.0)))) == ["both", "waits"]
        assert sorted(ids(engine.evaluate(Turn(session_id="a", itl_ms=5.0, timestamp_s=60.1)))) == want
        assert sorted(ids(engine.evaluate(Turn(session_id="a", itl_ms=5.0)))) == ["both", "waits"]


@pytest.mark.capability("issue 2 §9: misuse of observe raises and changes nothing")
def test_misuse(engine):
    """Unknown signals, signals of a session, names that are none: before anything is born."""
    for bad, kind in (
        ({"nonsense": 1.0}, UnknownSignal),
        ({"kv_usage_ratio": 0.9, "itl_ms": 30.0}, UsageError),
        ({"replica": 5, "kv_usage_ratio": 0.9}, TurnError),
        ({"replica": "new", "device": ["g"], "kv_usage_ratio": 0.9}, TurnError),
        ({"tenant": None, "kv_usage_ratio": 0.9}, TurnError),
        ({"replica": "x" * 129}, TurnError),
    ):
        with pytest.raises(kind):
            engine.observe(**bad)
    assert [len(shelf) for shelf in engine._scopes.held] == [0, 0, 0]


def test_bad_values_of_a_sample(tmp_path):
    """Values of a sample are judged as a turn's are, arrays and declared ones included."""
    engine = vector_engine(tmp_path)
    got = engine.observe(replica="r", kv_usage_ratio=7.0, link_ms="fast", timestamp_s=math.nan)
    assert sorted((f.kind, f.signal) for f in got.faults) == [
        ("invalid", "kv_usage_ratio"),
        ("invalid", "timestamp_s"),
        ("type_mismatch", "link_ms"),
    ]
    assert engine.observe(replica="r", waiting_requests=3, queue_occupancy=[1, 2]).faults == ()


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (3.5, (3.5, ())),
        (np.float32(2.0), (2.0, ())),
        (7, (7.0, ())),
        (MISSING, (None, ())),
        (None, (None, ())),
        (-1e308, (-1e308, ())),
        (math.inf, (None, ("invalid",))),
        (math.nan, (None, ("invalid",))),
        ("7", (None, ("type_mismatch",))),
        (object(), (None, ("type_mismatch",))),
        (10**400, (None, ("type_mismatch",))),
    ],
)
def test_moment(value, want):
    """A time is a finite number; negative ones order like any other."""
    found, faults = moment(value, "timestamp_s")
    assert (found, tuple(f.kind for f in faults)) == want


def test_bad_times_on_turns(engine):
    """A bad time is a fault that names the field, and counts as not given."""
    got = engine.evaluate(Turn(session_id="a", timestamp_s=math.inf, replica_sample_s="1", kv_usage_ratio=0.9))
    assert sorted((f.kind, f.signal) for f in got.faults) == [
        ("invalid", "timestamp_s"),
        ("type_mismatch", "replica_sample_s"),
    ]
    assert ids(got) == ["full"]


def test_times_that_nobody_reads():
    """A pack with nothing in wider scopes looks at no time, on the first turn as on any later one."""
    engine = breaker()
    for _ in range(3):
        assert engine.evaluate(Turn(session_id="a", itl_ms=1.0, timestamp_s="now")).faults == ()


def test_instances_are_bounded(engine):
    """Of more replicas than fit, the one used longest ago is forgotten."""
    engine._scopes.capacity = 3
    for name in "abcade":
        engine.observe(replica=name, kv_usage_ratio=0.9)
    assert [key[1] for key in engine._scopes.held[1]] == ["a", "d", "e"]
    assert Scopes(None).capacity == 4096


@pytest.mark.capability("issue 2 §2: every change of state is logged once, in every scope")
def test_changes_are_logged(engine, caplog):
    """A replica that breaks by a sample on a turn is logged as one that breaks by observe."""
    caplog.set_level(logging.INFO, "stabilitykit")
    engine.observe(replica="secret-1", kv_usage_ratio=0.9)
    engine.evaluate(Turn(session_id="secret-2", replica="secret-3", kv_usage_ratio=0.9, itl_ms=90.0))
    said = [r.getMessage().split() for r in caplog.records]
    assert [(m[0], m[1], m[5]) for m in said] == [
        ("state_changed", "scope=replica", "state=broken"),
        ("state_changed", "scope=replica", "state=broken"),
        ("state_changed", "scope=session", "state=broken"),
    ]
    assert "secret" not in caplog.text
    assert len({m[2] for m in said}) == 3


@pytest.mark.capability("issue 2 §2: tenants never meet, in sessions or replicas")
def test_two_tenants_have_two_replicas_of_one_name(engine):
    """Named and default replicas belong to a tenant, and so does what is decided of them."""
    assert engine.observe(replica="r", tenant="one", kv_usage_ratio=0.9).to_dict()["tenant"] == "one"
    engine.observe(tenant="one", kv_usage_ratio=0.9)
    for replica in ("r", None):
        assert ids(engine.evaluate(Turn(session_id="a", tenant="two", replica=replica))) == []
        assert ids(engine.evaluate(Turn(session_id="a", tenant="one", replica=replica))) == ["full"]


@pytest.mark.capability("issue 3 §3: an unknown signal in observe or in extra is answered with the nearest")
def test_an_unknown_signal_has_a_hint(engine):
    """The nearest signal that a sample may bring is named."""
    with pytest.raises(UnknownSignal, match="did you mean `kv_usage_ratio`"):
        engine.observe(replica="r", kv_usag_ratio=0.5)
    with pytest.raises(UnknownSignal, match="Turn has a field `itl_ms`"):
        engine.evaluate(Turn(session_id="s", extra={"itl_ms": 3.0}))
