"""Two real engines on real recorded turns: who decides, what is recorded, and what a failure costs."""

from __future__ import annotations

import json

import pytest

from stabilitykit import Engine, Turn, UsageError
from stabilitykit.rollout import CONTROL, TREATMENT, Arms, Rollout, read_report
from stabilitykit.sources.recording import LogFile, shipped_recording

HEAD = "stabilitykit: 1\npack: trial\nmachine: {initial: healthy, states: [{state: healthy}], transitions: []}\n"
RULE = "rules: [{rule: slow, when: itl_ms > 30 ms, do: [{throttle: {}}], tags: [sandbox]}]\n"


@pytest.fixture
def trial(tmp_path):
    """Load a pack that acts on slower answers."""
    path = tmp_path / "trial.yaml"
    path.write_text(HEAD + RULE, encoding="utf-8")
    return Engine.load(str(path))


@pytest.fixture
def quiet(tmp_path):
    """Load the same pack without its action."""
    path = tmp_path / "quiet.yaml"
    path.write_text(HEAD + RULE.replace("do: [{throttle: {}}], ", ""), encoding="utf-8")
    return Engine.load(str(path))


def lines(path):
    """Give the record."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.capability("issue 5 §6: rollout in shadow: the one on trial decides beside, and nobody acts on it")
def test_shadow(tmp_path, trial, quiet):
    """The host gets control's decisions, bit for bit those of an engine alone; the record holds both."""
    path, alone = tmp_path / "r.jsonl", Engine.load(str(tmp_path / "quiet.yaml"))
    speeds = [20.0, 40.0, 40.0, 20.0, 50.0]
    with Rollout(quiet, trial, path, Arms(b"key"), mode="shadow") as rollout:
        for speed in speeds:
            turn = Turn(session_id="user@example.org", itl_ms=speed)
            decision = rollout.evaluate(turn)
            assert decision.to_dict() == alone.evaluate(turn).to_dict()
            rollout.outcome(decision, decision.receipt([]), ok=speed < 45, tags={"depth": 1})
    report = read_report(path)
    assert (report.turns, report.differing_turns, report.verdict) == (5, 2, "shadow")
    assert (report.arms[CONTROL].actions, report.arms[TREATMENT].actions) == ({}, {"throttle": 2})
    assert [(a.bad, a.bad_acted) for a in report.arms.values()] == [(1, 0), (1, 1)]
    assert "example" not in path.read_text(encoding="utf-8")


def test_another_mode(tmp_path, quiet):
    """It is refused before a record is begun: a trial that tries nothing would go unnoticed."""
    with pytest.raises(UsageError, match="shadow or ab"):
        Rollout(quiet, quiet, tmp_path / "r.jsonl", Arms(b"key"), mode="a/b")  # type: ignore[arg-type]
    assert not (tmp_path / "r.jsonl").exists()


@pytest.mark.capability("issue 5 §6: rollout A/B: each conversation is decided by its arm's pack alone")
def test_ab(tmp_path, trial, quiet):
    """A conversation's turns go to one engine; outcomes are counted in its arm; a sample goes to both."""
    path, arms = tmp_path / "r.jsonl", Arms(b"key")
    with Rollout(quiet, trial, path, arms, mode="ab") as rollout:
        for _ in range(3):
            for name in ("a", "b", "c", "d", "e", "f"):
                decision = rollout.evaluate(Turn(session_id=name, itl_ms=10.0))
                decision = rollout.evaluate(Turn(session_id=name, itl_ms=40.0))
                assert bool(decision.actions) == (arms.of(name) == TREATMENT)
                rollout.outcome(decision, [a.name for a in decision.actions], ok=True)
        sampled = rollout.observe(replica="r1", timestamp_s=1.0, kv_usage_ratio=0.5)
        assert (sampled.scope, sampled.fingerprint) == ("replica", quiet.pack.fingerprint)
    drawn = [arms.of(name) for name in "abcdef"]
    report = read_report(path)
    assert [len(report.arms[arm].sessions) for arm in (CONTROL, TREATMENT)] == [
        drawn.count(CONTROL),
        drawn.count(TREATMENT),
    ]
    assert {line["arm"] for line in lines(path) if line.get("applied") == ["throttle"]} == {TREATMENT}
    assert sum(line["kind"] == "outcome" for line in lines(path)) == 18


def test_two_tenants(tmp_path, trial, quiet):
    """Sessions of one id in two tenants are two conversations of the report, each in its own arm, outcomes too."""
    path, arms, names = tmp_path / "r.jsonl", Arms(b"key"), [f"t-{k}" for k in range(8)]
    with Rollout(quiet, trial, path, arms, mode="ab") as rollout:
        for tenant in names:
            rollout.outcome(rollout.evaluate(Turn(session_id="c-1", tenant=tenant, itl_ms=40.0)), ok=True)
    drawn = [arms.of("c-1", tenant=tenant) for tenant in names]
    assert set(drawn) == {CONTROL, TREATMENT}
    assert [line["arm"] for line in lines(path) if line["kind"] == "outcome"] == drawn
    report = read_report(path)
    assert [len(report.arms[arm].sessions) for arm in (CONTROL, TREATMENT)] == [
        drawn.count(CONTROL),
        drawn.count(TREATMENT),
    ]


def test_a_recorded_conversation_in_shadow(tmp_path):
    """The packaged recording of a real server under two shipped packs: every turn is recorded with both decisions."""
    path, turns = tmp_path / "r.jsonl", 0
    with Rollout(Engine.load("chat"), Engine.load("api"), path, Arms(b"key"), mode="shadow") as rollout:
        for entry in LogFile(shipped_recording()).entries():
            if isinstance(entry, Turn):
                rollout.evaluate(entry)
                turns += 1
    assert turns > 20
    assert [len(line["decided"]) for line in lines(path)[1:]] == [2] * turns


def test_the_one_on_trial_fails(tmp_path, quiet, caplog):
    """What it raises costs nothing: the host has its decision, and the record says that there was no other."""

    class Broken:
        pack = quiet.pack

        def evaluate(self, turn):
            raise RuntimeError("what the user said")

        observe = evaluate

    path = tmp_path / "r.jsonl"
    with Rollout(quiet, Broken(), path, Arms(b"key"), mode="shadow") as rollout:  # type: ignore[arg-type]
        assert rollout.evaluate(Turn(session_id="a", itl_ms=1.0)).state == "healthy"
    assert list(lines(path)[1]["decided"]) == [CONTROL]


def test_an_outcome_never_raises(tmp_path, trial, quiet, caplog):
    """A number beyond doubles is left out, one name stands alone, and what is no decision is logged."""
    path = tmp_path / "r.jsonl"
    with Rollout(quiet, trial, path, Arms(b"key"), mode="ab") as rollout:
        decision = rollout.evaluate(Turn(session_id="a", itl_ms=1.0))
        rollout.outcome(decision, "trim_context", tags={"depth": 10**400, "fine": True})
        rollout.outcome(None)  # type: ignore[arg-type]
        rollout.outcome(decision, tags=7)  # type: ignore[arg-type]
        rollout.outcome(decision, 7)  # type: ignore[arg-type]
    *_, last = lines(path)
    assert (last["kind"], last["applied"], last["tags"]) == ("outcome", ["trim_context"], {"fine": True})
    assert caplog.text.count("rollout_record_failed") == 3


def test_a_closed_record(tmp_path, trial, quiet):
    """A record that cannot be written costs no decision; values that are no JSON number are left out."""
    path = tmp_path / "r.jsonl"
    rollout = Rollout(quiet, trial, path, Arms(b"key"), mode="ab")
    decision = rollout.evaluate(Turn(session_id="a", itl_ms=1.0))
    rollout.outcome(decision, tags={"depth": float("nan"), "said": "text", "fine": True})  # type: ignore[dict-item]
    rollout.close()
    rollout.outcome(decision, ok=True)
    assert rollout.evaluate(Turn(session_id="a", itl_ms=1.0)).turn_id == 2
    assert lines(path)[-1]["tags"] == {"fine": True}


@pytest.mark.parametrize("size", range(1, 40))
def test_a_line_torn_by_a_crash_costs_no_other(tmp_path, quiet, size):
    """The next run ends it before it writes its own; the report leaves it out and says so."""
    path = tmp_path / "r.jsonl"
    for _ in range(2):
        with Rollout(quiet, quiet, path, Arms(b"key"), mode="ab") as rollout:
            rollout.outcome(rollout.evaluate(Turn(session_id="c-1", itl_ms=40.0)), ok=True)
        with path.open("ab") as file:
            file.write(json.dumps({"kind": "turn", "session": "0123456789abcdef", "turn": 3}).encode()[:size])
    report = read_report(path)
    assert (report.turns, report.torn_lines) == (2, 1)


def test_a_full_disk(quiet, caplog):
    """Nothing can be written: the host gets its decisions, the log says what was lost."""
    with Rollout(quiet, quiet, "/dev/full", Arms(b"key"), mode="ab") as rollout:
        decision = rollout.evaluate(Turn(session_id="c-1", itl_ms=40.0))
        rollout.outcome(decision, ok=True)
    assert decision.state == "healthy"
    assert caplog.text.count("rollout_record_failed") == 3
