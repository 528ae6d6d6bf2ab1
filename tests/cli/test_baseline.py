from __future__ import annotations

import json

import numpy as np
import pytest

from stabilitykit import Engine, Turn
from stabilitykit.sources.recording import shipped_recording


def rows(model, count=60, scale=1.0, seed=0):
    """Give turns of one model, ITL about 40 ms times ``scale``."""
    drawn = np.random.default_rng(seed)
    return [
        {"session_id": f"c-{k % 4}", "model": model, "replica": "r", "error": "none",
         "itl_ms": scale * 40 * drawn.lognormal(0, 0.1), "ttft_ms": scale * 300 * drawn.lognormal(0, 0.2)}
        for k in range(count)
    ]  # fmt: skip


def write(path, turns):
    """Write a recording."""
    path.write_text("".join(json.dumps(turn) + "\n" for turn in turns), encoding="utf-8")
    return path


@pytest.mark.capability("issue 4 §5: baseline RECORDING: p50, p90, p99 of first token, gaps and prefill per model")
def test_the_shipped_recording(run, tmp_path):
    """The quantiles are numpy's of the recorded turns, and the pack passes `check`."""
    output = tmp_path / "usual.yaml"
    told = run("baseline", "-o", output, "--json").records[0]
    (found,) = told["models"].values()
    lines = [json.loads(line) for line in shipped_recording().read_text(encoding="utf-8").splitlines()]
    turns = [row for row in lines if row.get("error") == "none"]
    first = {row["replica"]: row for row in reversed(turns)}
    for signal in ("itl_ms", "ttft_ms", "prefill_ms"):
        values = [row[signal] for row in turns if first[row["replica"]] is not row and signal in row]
        assert found[signal]["count"] == len(values)
        for percent in (50, 90, 99):
            wanted = np.percentile(values, percent, method="inverted_cdf")
            assert found[signal][f"p{percent}"] == pytest.approx(wanted, rel=1e-3)
    assert run("check", output).code == 0


@pytest.mark.capability("issue 4 §5: baseline: the breaker uses the pack as its static baseline")
def test_the_breaker_uses_it(run, tmp_path):
    """Three turns at three times the usual gap break a conversation without a past; usual ones never do."""
    log, output = write(tmp_path / "log.jsonl", rows("m", 200)), tmp_path / "usual.yaml"
    assert run("baseline", log, "-o", output).code == 0
    engine, plain = Engine.load(str(output)), Engine.load("chat")
    slow = [Turn(session_id="new", itl_ms=120.0, output_tokens=50) for _ in range(3)]
    assert [engine.evaluate(turn).state for turn in slow][-1] == "broken"
    assert [plain.evaluate(turn).state for turn in slow][-1] == "healthy"
    for row in rows("m", 400, seed=1):
        decision = engine.evaluate(Turn(**{**row, "session_id": "usual"}))
        assert decision.state == "healthy"


@pytest.mark.capability("issue 4 §5: baseline: a steady gap above max(1.2 p50, 1.2 p90) is called, one below it is not")
@pytest.mark.parametrize("jitter", [0.05, 0.5, 1.0])
def test_a_steady_value_above_the_threshold_is_called(run, tmp_path, jitter):
    """Within the five turns of itl-elevated, and not on the fourth; what is told is the threshold that was written."""
    drawn = np.random.default_rng(2)
    turns = [{**row, "itl_ms": 40 * drawn.lognormal(0, jitter)} for row in rows("m", 200)]
    log, output = write(tmp_path / "log.jsonl", turns), tmp_path / "usual.yaml"
    found = run("baseline", log, "-o", output, "--json").records[0]["models"]["m"]["itl_ms"]
    threshold = 1.2 * max(found["p50"], found["p90"])
    engine = Engine.load(str(output))
    waited = next(rule.for_turns for rule in engine.pack.rules if rule.id == "itl-elevated")
    above = [engine.evaluate(Turn(session_id="a", itl_ms=1.001 * threshold)) for _ in range(waited)]
    called = [any(match.rule == "itl-elevated" for match in decision.matches) for decision in above]
    assert called == [False] * (waited - 1) + [True]
    below = [engine.evaluate(Turn(session_id="b", itl_ms=0.999 * threshold)) for _ in range(3 * waited)]
    assert not [match.rule for decision in below for match in decision.matches if match.rule.startswith("itl-e")]


def test_a_steady_first_token_is_called_above_its_floor(run, tmp_path):
    """Three times the median is called by ttft-inflated from the floor of pack `latency` on, and not below it."""
    for scale, expected in ((4.0, True), (0.5, False)):
        log, output = write(tmp_path / "log.jsonl", rows("m", 200, scale=scale)), tmp_path / "usual.yaml"
        found = run("baseline", log, "-o", output, "--json").records[0]["models"]["m"]["ttft_ms"]
        engine = Engine.load(str(output))
        value = 3.01 * found["p50"]
        assert (value > engine.pack.params["ttft_floor"].value) == expected
        told = [engine.evaluate(Turn(session_id="a", ttft_ms=value)) for _ in range(3)]
        assert ("ttft-inflated" in {match.rule for match in told[-1].matches}) == expected


def test_the_tail(run, tmp_path):
    """Three of twenty turns beyond p99 are called, although most turns are usual."""
    log, output = write(tmp_path / "log.jsonl", rows("m", 200)), tmp_path / "usual.yaml"
    run("baseline", log, "-o", output)
    engine = Engine.load(str(output))
    values = [40.0] * 4 + [62.0]
    matched = [{m.rule for m in engine.evaluate(Turn(session_id="c", itl_ms=value)).matches} for value in values * 3]
    assert "itl-beyond-p99" in matched[-1]
    assert "itl-beyond-p99" not in set().union(*matched[:-1])


def test_several_models(run, tmp_path):
    """Each gets a pack; `--model` chooses one, a misspelt one is told the nearest."""
    log = write(tmp_path / "log.jsonl", rows("big/model 70B") + rows("small", scale=0.1, seed=1) + rows("rare", 5))
    ran = run("baseline", log, "-o", tmp_path / "usual.yaml")
    assert ran.code == 0
    assert "rare: fewer than 20" in ran.err
    for name in ("usual-big-model-70b.yaml", "usual-small.yaml"):
        assert run("check", tmp_path / name).code == 0
    assert run("baseline", log, "-o", tmp_path / "one.yaml", "--model", "small").code == 0
    assert "usual for small" in (tmp_path / "one.yaml").read_text()
    ran = run("baseline", log, "-o", tmp_path / "one.yaml", "--model", "smal")
    assert (ran.code, "small" in ran.err) == (2, True)


def test_a_cold_first_turn_is_no_baseline(run, tmp_path):
    """A first request that compiles for 45 s does not become p99."""
    turns = rows("m", 100)
    turns[0]["ttft_ms"] = 45_000.0
    log = write(tmp_path / "log.jsonl", turns)
    found = run("baseline", log, "-o", tmp_path / "usual.yaml", "--json").records[0]["models"]["m"]
    assert found["ttft_ms"]["p99"] < 1000


def test_too_little(run, tmp_path):
    """Fewer than twenty turns, or a name that is no pack's: exit 2 and why."""
    log = write(tmp_path / "log.jsonl", rows("m", 10))
    assert "20 answered turns" in run("baseline", log, "-o", tmp_path / "usual.yaml").err
    assert run("baseline", log, "-o", tmp_path / "usual.json").code == 2
    assert run("baseline", log, "-o", tmp_path / "gone" / "usual.yaml").code == 2
