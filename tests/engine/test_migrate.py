"""Hot reload: what has the same name keeps its memory, a bad pack leaves the last good one, states may be renamed."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
import pytest

from stabilitykit import Engine, PackError, ReloadRefused
from tests.engines import VECTORS, Turn, vector_engine, words

RELOADS, SOAK_RELOADS = 100, 1_000


def written(folder, text, name="vectors.yaml"):
    """Write a pack; gives its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def changed(*pairs):
    """Give the pack with pieces of its text replaced."""
    text = VECTORS
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


def turns(count, first=1, session="a"):
    """Give turns that move every kind of memory."""
    for k in range(first, first + count):
        yield Turn(
            session_id=session,
            turn_id=k,
            itl_ms=30.0 if k % 9 < 5 else 300.0,
            replica="r",
            device="g",
            timestamp_s=float(k),
            embedding=[1.0, 0.3 * (k % 3), 0.0, 0.1],
            finish_reason="abort" if k % 4 == 0 else "stop",
            kv_usage_ratio=0.9 if k % 8 < 5 else 0.1,
            replica_sample_s=float(k // 2),
            gpu_temperature_c=95.0 if k % 16 > 12 else 60.0,
            device_sample_s=float(k // 3),
            top_token_ids=[1, 2, 3],
            top_logprobs=[-0.5 - 0.2 * (k % 2), -1.5, -3.0],
        )


@pytest.mark.capability("issue 2 §6: a reload keeps session state: streaks, windows, machine, dwell, detectors")
@pytest.mark.parametrize("every", [1, 3, 7])
def test_same_pack(tmp_path, every):
    """Reloading the same pack, however often, changes no decision in any scope."""
    engine, plain = vector_engine(tmp_path), vector_engine(tmp_path)
    path = written(tmp_path, VECTORS)
    for k, turn in enumerate(turns(40)):
        if k % every == 0:
            report = engine.reload(path)
            assert (report.started, report.dropped, report.generation) == (0, 0, engine._live.number)
        assert words(engine.evaluate(turn)) == words(plain.evaluate(turn))
        if k % 5 == 0:
            sample = {"replica": "r", "timestamp_s": float(k), "kv_usage_ratio": 0.4, "link_ms": 90.0 * (k % 2)}
            assert words(engine.observe(**sample)) == words(plain.observe(**sample))


@pytest.mark.capability("issue 2 §6: a reload keeps session state: streaks, windows, machine, dwell, detectors")
def test_other_pack_around_it(tmp_path):
    """Rules, detectors and signals that come, go and change places leave the memory of the others alone."""
    more = (
        ("detectors:\n", "detectors:\n  early: {type: baseline, input: ttft_ms}\n"),
        ("  - rule: far-off", "  - {rule: early, when: 'early.ratio > 3'}\n  - rule: far-off"),
        ('  - {rule: low-score, when: "host_score < 0.5", severity: info}\n', ""),
    )
    engine, plain = vector_engine(tmp_path), vector_engine(tmp_path)
    paths = [written(tmp_path, changed(*more), "more.yaml"), written(tmp_path, VECTORS)]
    reports = []
    for k, turn in enumerate(turns(40)):
        if k % 2 == 1:
            reports.append(engine.reload(paths[k // 2 % 2]))
        assert words(engine.evaluate(turn)) == words(plain.evaluate(turn))
    assert (reports[0].started > 0, reports[0].dropped) == (True, 1)
    assert (reports[1].started, reports[1].dropped > 0) == (1, True)
    assert reports[0].kept == reports[1].kept > 20


def streaks(engine, **more):
    """Give the streak of the slow rule after one more slow turn."""
    decision = engine.evaluate(Turn(session_id="a", itl_ms=300.0, **more))
    return [r.streak for r in decision.reasons if r.rule == "slow-now"]


@pytest.mark.capability("issue 2 §3: a changed threshold is a new rule memory, a changed param or `for` is not")
def test_what_a_rule_is(tmp_path):
    """Canonical text names a rule's memory: numbers inside `when` do, params, `for`, `do`, severity do not."""
    text = changed(
        ("params:\n", "params:\n  limit: {default: 80 ms, doc: slow}\n"), ("itl_ms > 80 ms", "itl_ms > params.limit")
    )
    path = written(tmp_path, text)
    cases = {
        (("default: 80 ms", "default: 90 ms"),): [4],
        (("for: 2 turns", "for: 3 turns"),): [4],
        (("severity: critical, do: [{throttle: {}}]", "severity: warning, keep_for: 2 turns"),): [4],
        (("itl_ms > params.limit", "itl_ms > 80 ms"),): [],
        (("rule: slow-now", "rule: slower-now"),): [],
    }
    for edits, want in cases.items():
        engine = Engine.load(path, ttl_s=None)
        for _ in range(5):
            engine.evaluate(Turn(session_id="a", itl_ms=30.0))
        for _ in range(3):
            streaks(engine)
        new = text
        for old, other in edits:
            assert old in new
            new = new.replace(old, other)
        engine.reload(written(tmp_path, new, "new.yaml"))
        assert streaks(engine) == want
    engine = Engine.load(path, ttl_s=None)
    for value in [30.0] * 5 + [300.0] * 3:
        engine.evaluate(Turn(session_id="a", itl_ms=value))
    engine.reload(path, params={"limit": "70 ms"})
    assert streaks(engine) == [4]


@pytest.mark.capability("issue 2 §3: a state that vanishes is refused (SK510) or mapped by `was:`")
def test_states(tmp_path):
    """Without `was:` the reload is refused and nothing changes; with it the state, dwell and privilege go over."""
    engine = vector_engine(tmp_path)
    states = [engine.evaluate(Turn(session_id="a", itl_ms=v)).state for v in [30.0] * 5 + [300.0] * 2]
    assert states[-1] == "broken"
    renamed = (
        ("{state: broken, do: [{emit_metric: {}}]}", "{state: open, was: broken}, {state: gone}"),
        ("to: broken", "to: open"),
        ("from: broken", "from: open"),
        ("    - {from: recovering", "    - {from: open, to: gone, when: at least 9 critical}\n    - {from: recovering"),
    )
    good = changed(*renamed)
    for was in ("", ", was: nothing"):
        bad = written(tmp_path, good.replace(", was: broken", was), "bad.yaml")
        with pytest.raises((ReloadRefused, PackError), match=r"SK5|was"):
            engine.reload(bad)
        assert (engine.pack.name, engine._live.number) == ("vectors", 1)
    engine.reload(written(tmp_path, good, "good.yaml"))
    assert ("", "a") in engine.sessions.kept
    after = [engine.evaluate(Turn(session_id="a", itl_ms=30.0)) for _ in range(3)]
    assert [(d.previous, d.state) for d in after] == [("open", "open"), ("open", "open"), ("open", "recovering")]
    assert ("", "a") in engine.sessions.live


@pytest.mark.capability("issue 2 §6: a bad pack leaves the last good one in place and says why")
def test_bad_pack(tmp_path):
    """A pack with errors, or over the memory limit, changes nothing."""
    engine = vector_engine(tmp_path, row_limit=4096)
    next_turn = turns(20)
    for _ in range(5):
        engine.evaluate(next(next_turn))
    before = engine.export("a")
    big = "".join(f"  d{k}: {{type: itl_breaker}}\n" for k in range(20))
    for text in (
        "stabilitykit: 1\n",
        VECTORS.replace("itl_ms > 80 ms", "itl_sm > 80 ms"),
        VECTORS.replace("detectors:\n", "detectors:\n" + big),
        VECTORS.replace("severity: critical", "severity: deadly"),
        "\x00",
        "",
    ):
        with pytest.raises(PackError):
            engine.reload(written(tmp_path, text, "bad.yaml"))
        assert engine.export("a") == before
    assert engine.evaluate(next(next_turn)).generation == 1


def test_sessions_many_generations_behind(tmp_path):
    """A session that slept through ten reloads wakes with its memory; few generations are held."""
    engine, plain = vector_engine(tmp_path), vector_engine(tmp_path)
    entries = list(turns(30))
    for turn in entries[:15]:
        engine.evaluate(turn)
        plain.evaluate(turn)
    more = written(
        tmp_path,
        changed(("  - rule: far-off", "  - {rule: late, when: 'ttft_ms > 1 s'}\n  - rule: far-off")),
        "m.yaml",
    )
    for k in range(10):
        engine.reload((more, written(tmp_path, VECTORS))[k % 2])
        engine.evaluate(Turn(session_id="other", itl_ms=1.0))
        assert engine._live.depth <= 4
    for turn in entries[15:]:
        assert words(engine.evaluate(turn)) == words(plain.evaluate(turn))


def test_vectors_come_with_a_reload(tmp_path):
    """Replicas born under a pack without vectors get their block when the new pack widens a detector."""
    engine = vector_engine(
        tmp_path,
        changed(
            ("  drift: {type: intent_drift, dim: 4, method: source_corrected, window: 3, k: 1.0}\n", ""),
            (VECTORS[VECTORS.index("  - rule: far-off") : VECTORS.index("  - {rule: jump")], ""),
        ),
    )
    wide = changed(("{type: intent_drift, dim: 4", "{type: intent_drift, scope: replica, dim: 4"))
    entries = list(turns(12))
    for turn in entries[:6]:
        engine.evaluate(turn)
    engine.reload(written(tmp_path, wide))
    for turn in entries[6:]:
        assert engine.evaluate(turn).faults == ()
    instance = engine._scopes.held[1]["", "r"]
    assert instance.vec is not None
    assert np.isfinite(instance.vec).all()
    assert instance.vec.any()


def test_snapshots_before_a_reload_are_gone(tmp_path):
    """A kept turn of another layout is not forked from; the session itself is."""
    engine = vector_engine(tmp_path, snapshots=5)
    for turn in turns(5):
        engine.evaluate(turn)
    engine.reload(written(tmp_path, VECTORS))
    with pytest.raises(ValueError, match="not kept"):
        engine.fork("a", "b", at_turn=3)
    engine.fork("a", "b")
    assert engine.evaluate(next(turns(1, first=6, session="b"))).turn_id == 6


def hammer(engine, stop, seen, session):
    """Evaluate until told to stop; keep what was decided."""
    for k in itertools.count(1):
        if stop.is_set():
            return
        decision = engine.evaluate(Turn(session_id=session, turn_id=k, itl_ms=90.0 if k % 3 else 10.0))
        seen.append(
            (
                decision.generation,
                decision.fingerprint,
                k,
                [(m.rule, m.fired) for m in decision.matches],
                decision.faults,
            )
        )


def reload_under_load(folder, reloads):
    """Alternate packs, good and bad, under four threads."""
    steady = "{rule: steady, when: itl_ms > 80 ms, count: {at_least: 1, in: 64 turns}}"
    text = f"stabilitykit: 1\npack: p\nextends: [base]\nrules:\n  - {steady}\n"
    paths = [
        written(folder, text + f"  - {{rule: r{k}, when: itl_ms > {80 + 20 * k} ms}}\n", f"p{k}.yaml") for k in range(2)
    ]
    bad = written(folder, text + "  - {rule: r0, when: itl_sm > 1 ms}\n", "bad.yaml")
    engine = Engine.load(paths[0], ttl_s=None)
    expect = {1: paths[0]}
    stop, seen = threading.Event(), dict[str, list[Any]]((name, []) for name in "abcd")
    threads = [threading.Thread(target=hammer, args=(engine, stop, seen[name], name)) for name in seen]
    for thread in threads:
        thread.start()
    try:
        for k in range(reloads):
            if k % 3 == 2:
                with pytest.raises(PackError):
                    engine.reload(bad)
            else:
                expect[engine.reload(paths[k % 2]).generation] = paths[k % 2]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    prints = {path: Engine.load(path).pack.fingerprint for path in paths}
    for decisions in seen.values():
        assert len(decisions) > 3
        assert [d[0] for d in decisions] == sorted(d[0] for d in decisions)
        for generation, fingerprint, k, matches, faults in decisions:
            assert (fingerprint, faults) == (prints[expect[generation]], ())
            ids = [rule for rule, _ in matches]
            assert "steady" in ids  # the history goes over from pack to pack
            assert ("r0" in ids) is (k % 3 != 0 and expect[generation] == paths[0])
            assert "r1" not in ids
        assert [fired for d in decisions for rule, fired in d[3] if rule == "steady"].count(True) == 1
    return len(expect)


@pytest.mark.capability("issue 2 §6: 100 reloads under four threads, every decision citing one generation")
def test_reload_under_load(tmp_path):
    """Good and bad packs in turns; each decision is what its generation's pack decides; memory goes over."""
    assert reload_under_load(tmp_path, RELOADS) > RELOADS // 2


@pytest.mark.soak
@pytest.mark.capability("issue 2 §6: 1,000 reloads under four threads, every decision citing one generation")
def test_reload_under_load_soak(tmp_path):
    """The same, longer."""
    assert reload_under_load(tmp_path, SOAK_RELOADS) > SOAK_RELOADS // 2
