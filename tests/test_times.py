"""A detector may read when its turn or sample was: the engine's time is the oracle's (decision D29)."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from stabilitykit.compiled.program import build_program
from stabilitykit.detectors import DETECTORS
from stabilitykit.engine import Engine
from stabilitykit.errors import PackError
from stabilitykit.rules.load import load_pack
from stabilitykit.turn import Turn
from tests.naive.engine import NaiveEngine
from tests.naive.twins import TWINS
from tests.test_differential import shown, wanted

PACK = """\
stabilitykit: 1
pack: times
signals:
  slowest_transition_us: {unit: us, scope: replica, min: 0 us, max: 1e12 us, doc: of the last sample}
detectors:
  own: {type: precrash, transition_limit: 9 us}
  served: {type: precrash, transition_limit: 9 us, scope: replica}
  sampled: {type: precrash, transition: slowest_transition_us}
rules:
  - {rule: own-one, when: own.active_count == 1, on_missing: skip, severity: warning}
  - {rule: own-two, when: own.active_count >= 2, on_missing: skip, severity: critical}
  - {rule: served-two, when: served.active_count >= 2, on_missing: skip, severity: critical}
  - {rule: sampled-one, when: sampled.active_count == 1, on_missing: skip, severity: warning}
  - {rule: sampled-two, when: sampled.active_count >= 2, on_missing: skip, severity: critical}
  - {rule: hurry, when: sampled.time_left_ms < 50 ms and own.time_left_ms < 50 ms, severity: info}
machine:
  initial: healthy
  states: [{state: healthy}, {state: warning}, {state: broken}]
  transitions:
    - {from: [healthy, warning], to: broken, when: any critical}
    - {from: healthy, to: warning, when: any warning}
    - {from: [warning, broken], to: healthy, when: none for 2 turns}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Give the pack, laid out."""
    path = tmp_path_factory.mktemp("packs") / "times.yaml"
    path.write_text(PACK)
    return build_program(load_pack(str(path), detectors=DETECTORS))


def clock(rng, now):
    """Give a time as hosts give them: mostly good, sometimes absent or no time at all."""
    return rng.choice([now] * 8 + [None, math.nan, math.inf, "noon", now - 0.3])


def replica_signals(rng):
    """Give some of a replica's signals, over their limits now and then."""
    drawn = {
        "ringbuf_pop_us": rng.choice([1.0, 9.0]),
        "queue_full_per_s": rng.choice([0.0, 50.0]),
        "cas_failure_ratio": rng.choice([0.0, 0.0, 0.1]),
    }
    return {name: value for name, value in drawn.items() if rng.random() < 0.4}


@pytest.mark.parametrize(("seed", "compiled"), [*itertools.product(range(12), [None]), (0, False), (1, False)])
def test_engine_agrees_with_the_oracle(program, seed, compiled):
    """Turns and samples at times good and bad: the same decisions, wherever the detector lives."""
    rng, now = random.Random(seed), 1000.0
    engine, oracle = Engine(program, compiled=compiled, ttl_s=None), NaiveEngine(program.pack, detectors=TWINS)
    for number in range(200):
        now += rng.choice([0.0, 0.02, 0.05, 0.1, 0.2, 90.0])
        if rng.random() < 0.4:
            seen = {**replica_signals(rng), "slowest_transition_us": rng.choice([1.0, 8.0])}
            call = {"timestamp_s": clock(rng, now), "replica": rng.choice(["a", "b"]), **seen}
            got, want = shown(engine.observe(**call)), wanted(oracle.observe(**call), "observe")
        else:
            turn = Turn(
                session_id=rng.choice(["x", "y"]),
                replica=rng.choice(["a", "b"]),
                timestamp_s=clock(rng, now),
                replica_sample_s=clock(rng, now),
                state_transition_us=rng.choice([1.0, 20.0]),
                **replica_signals(rng),
            )
            call = {"turn": turn}
            got, want = shown(engine.evaluate(turn)), wanted(oracle.evaluate(turn), "session")
        unlike = {k: (got[k], want[k]) for k in got if got[k] != want[k]}
        assert not unlike, f"(engine, oracle) {unlike} on {number}: {call}"


def test_a_time_is_no_content(program):
    """The same turn sent again later is the same turn."""
    engine = Engine(program)
    first = engine.evaluate(Turn(session_id="s", turn_id=1, timestamp_s=1.0, state_transition_us=1.0))
    again = engine.evaluate(Turn(session_id="s", turn_id=1, timestamp_s=2.0, state_transition_us=1.0))
    assert again == first
    assert again.faults == ()


def test_a_time_alone_is_no_sample(program):
    """A turn that says when the replica was measured, and nothing measured, moves no replica."""
    engine = Engine(program)
    engine.observe(timestamp_s=1.0, ringbuf_pop_us=9.0)
    decision = engine.evaluate(Turn(session_id="s", timestamp_s=9.0, replica_sample_s=9.0, state_transition_us=1.0))
    assert decision.scopes["replica"] == "warning"


@pytest.mark.parametrize("setting", ["time: itl_ms", "ring: timestamp_s"])
def test_a_time_goes_with_a_time_only(tmp_path, setting):
    """A signal is no time, a time is no signal: an error at load."""
    path = tmp_path / "times.yaml"
    path.write_text(PACK.replace("{type: precrash, transition_limit: 9 us}", f"{{type: precrash, {setting}}}"))
    with pytest.raises(PackError, match="SK301"):
        load_pack(str(path), detectors=DETECTORS)


def test_replay_of_columns_sees_the_times(program):
    """Turns in columns are decided like turns one by one."""
    count = 60
    rng = random.Random(3)
    times = [0.06 * k for k in range(count)]
    pops = [rng.choice([1.0, 9.0]) for _ in times]
    shares = [rng.choice([0.0, 0.1]) for _ in times]
    columns = {"timestamp_s": times, "ringbuf_pop_us": pops, "cas_failure_ratio": shares}
    replayed = Engine(program).replay(columns, session="s")
    engine = Engine(program)
    fired = [
        "own-two" in engine.evaluate(Turn(session_id="s", timestamp_s=t, ringbuf_pop_us=p, cas_failure_ratio=s)).fired
        for t, p, s in zip(times, pops, shares, strict=True)
    ]
    assert replayed.fired("own-two").tolist() == fired
    assert any(fired)
