"""The `chat` pack on whole conversations: perfect ones, recorded ones, and the way back from trouble."""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs
import numpy as np
import pytest

from benchmarks.subjects.replay_real import RECORDING, Row, recording
from stabilitykit import Engine, Turn

TURNS = 200
FULL = 0.6
"""Share of the window that is used in the end."""


@attrs.frozen
class Family:
    """How one kind of serving behaves when nothing is wrong; times in ms.

    Parameters
    ----------
    miscount
        Greatest share by which the host's own tokenizer counts wrong (then it has no positions either); NaN: the host
        does not count.
    spread
        Greatest share by which a prompt is longer or shorter, as what was looked up for it varies.
    full
        Share of the window that is used in the end.
    summary_at
        Turns before which the host replaces the history by a summary, and says so with a receipt.
    """

    itl: float
    ttft: float
    per_new_token: float
    window: int
    hit_ratio: float | None
    itl_growth: float = 0.0
    jitter: float = 0.12
    miscount: float = 0.0
    spread: float = 0.0
    full: float = FULL
    summary_at: tuple[int, ...] = ()


FAMILIES = {
    "hosted, small and fast": Family(9, 300, 0.0, 128_000, None, jitter=0.2),
    "hosted, overloaded for ever": Family(110, 13_000, 0.0, 32_000, None, jitter=0.2),
    "vLLM, 70B, prefix cache": Family(40, 120, 0.25, 128_000, 0.97),
    "SGLang, no prefix cache": Family(25, 80, 0.12, 64_000, 0.0),
    "llama.cpp on a CPU": Family(30, 250, 9.0, 32_000, 0.98, itl_growth=0.6),
    "a reasoning model, a million tokens": Family(18, 900, 0.02, 1_000_000, 0.9, jitter=0.15),
    "a tokenizer of the host's own": Family(12, 350, 0.01, 128_000, 0.9, miscount=0.02),
    "retrieval, prompts of any size": Family(25, 200, 0.05, 64_000, None, spread=0.3, full=0.45),
    "retrieval, and nobody counts": Family(25, 200, 0.05, 64_000, None, miscount=math.nan, spread=0.3, full=0.45),
    "a summary now and then": Family(40, 120, 0.25, 32_000, 0.97, miscount=math.nan, summary_at=(80, 140)),
}


def perfect(family: Family, seed: int) -> Iterator[Turn]:
    """Give 200 turns with jitter, single outliers, a growing context and one topic."""
    rng = np.random.default_rng(seed)
    topic = unit(rng.normal(size=384))
    logits = np.r_[4.0, rng.normal(size=19)]
    tokens = 0.01 * family.window
    for number in range(1, TURNS + 1):
        is_new = number == 1 or number in family.summary_at
        tokens *= 0.2 if number in family.summary_at else 1.0
        size = round(tokens * rng.uniform(1.0 - family.spread, 1.0 + family.spread))
        answer = round(0.5 * (family.full * family.window - tokens) / (TURNS + 1 - number))
        cached = None if family.hit_ratio is None else round(size * family.hit_ratio * (not is_new))
        prefill = (family.ttft + family.per_new_token * (size - (cached or 0))) * noise(rng, family.jitter)
        itl = family.itl * (1 + family.itl_growth * number / TURNS) * noise(rng, family.jitter)
        yield Turn(
            session_id="perfect",
            model="a",
            ttft_ms=prefill + rng.exponential(20.0),
            prefill_ms=prefill,
            itl_ms=itl,
            decode_tokens_per_s=1000.0 / itl,
            sent_tokens=counted(rng, size, family.miscount),  # type: ignore[arg-type]
            input_tokens=size,
            output_tokens=answer,
            cached_tokens=cached,  # type: ignore[arg-type]
            context_window_tokens=family.window,
            position_ids=np.arange(max(size - 8, 0), size) if family.miscount == 0.0 else None,
            finish_reason="stop",
            error="none",
            http_status=200,
            embedding=(topic + unit(rng.normal(size=384)) * rng.uniform(0.5, 0.8)).astype(np.float32),
            top_token_ids=np.arange(20),
            top_logprobs=log_softmax(logits + rng.normal(scale=0.4, size=20)),
        )
        tokens += 2 * answer


def counted(rng: np.random.Generator, size: int, miscount: float) -> int | None:
    """Give how many tokens the host thinks that it sent."""
    return None if math.isnan(miscount) else round(size * rng.uniform(1 - miscount, 1 + miscount))


def noise(rng: np.random.Generator, sigma: float) -> float:
    """Give a factor around 1; one turn in 40 takes three times as long."""
    return float(np.exp(rng.normal(scale=sigma)) * (3.0 if rng.random() < 0.025 else 1.0))


def unit(vector: np.ndarray) -> np.ndarray:
    """Give the vector with length 1."""
    return vector / np.linalg.norm(vector)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Give log-probabilities that leave 1 % to other tokens."""
    return (logits - np.log(np.exp(logits).sum()) + np.log(0.99)).astype(np.float32)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.capability("issue 2 §4: a perfect conversation of 200 turns stays healthy with every rule silent")
def test_a_perfect_conversation_is_left_alone(name, seed):
    """Healthy on every turn, every rule silent, no fault, whatever the model family."""
    engine = Engine.load("chat")
    rng = np.random.default_rng(seed)
    family = FAMILIES[name]
    usage, receipt = 0.0, None
    for number, turn in enumerate(perfect(family, seed), 1):
        # The replica is busy, with short bursts of waiting and a cache that is always nearly full.
        sample = engine.observe(
            timestamp_s=float(number),
            running_requests=int(rng.integers(20, 60)),
            waiting_requests=int(rng.integers(1, 9)) if rng.random() < 0.3 else 0,
            kv_usage_ratio=float(rng.uniform(0.8, 0.98)),
            kv_fragmentation_ratio=float(rng.uniform(0.0, 0.15)),
            preemptions_count=3 + number // 60,
        )
        decision = engine.evaluate(attrs.evolve(turn, applied=receipt if number in family.summary_at else None))
        receipt = decision.receipt(["insert_summary"])
        said = [m.rule for m in (*sample.matches, *decision.matches)]
        assert (number, said, decision.state, decision.actions, decision.faults) == (number, [], "healthy", (), ())
        usage = (turn.input_tokens + turn.output_tokens) / turn.context_window_tokens
    assert usage == pytest.approx(family.full, abs=0.05 + family.spread * family.full)


def test_a_summary_without_a_receipt_is_a_loss():
    """The same conversation, and nobody says that the host itself replaced the history."""
    engine = Engine.load("chat")
    family = FAMILIES["a summary now and then"]
    fired = [number for number, turn in enumerate(perfect(family, 0), 1) if engine.evaluate(turn).fired]
    assert fired[0] == family.summary_at[0]


@pytest.mark.parametrize("seed", range(5))
def test_a_slow_host_is_no_broken_one(seed):
    """A CPU host that gives 2.2 tokens a second for ever is in `warning` at worst, and leaves it for nothing worse."""
    engine = Engine.load("chat")
    slow = Family(450, 2_500, 9.0, 8_000, 0.98, jitter=0.0)
    decisions = [engine.evaluate(attrs.evolve(turn, itl_ms=450.0)) for turn in perfect(slow, seed)]
    assert {d.state for d in decisions[:2]} == {"healthy"}
    assert {d.state for d in decisions[2:]} == {"warning"}
    assert {m.rule for d in decisions for m in d.matches} == {"itl-unreadable"}


@pytest.fixture(scope="module")
def recorded() -> dict[str, Row]:
    """Give what `chat` says about the shipped recording of a real server."""
    if not RECORDING.is_file():
        pytest.skip("the recording is not there yet: make it with benchmarks/record")
    return recording()


@pytest.mark.capability(
    "issue 2 §1: the recorded run through `chat`: every trouble is called, the healthy conversation is left alone"
)
def test_the_recorded_healthy_conversation_stays_healthy(recorded):
    """No change of state, nothing worse than info."""
    row = recorded["healthy"]
    assert (row["states"], row["first_fired"]) == ({}, {})


@pytest.mark.capability(
    "issue 2 §1: the recorded run through `chat`: every trouble is called, the healthy conversation is left alone"
)
def test_the_recorded_refusals_are_foreseen_and_called(recorded):
    """Filling and full before the first refusal, broken and a reset on the second, healthy in the end."""
    row = recorded["overflow"]
    first = row["trouble"][0]
    fired = row["first_fired"]
    assert fired["context-filling"] < fired["context-full"] < first
    assert fired["context-overflow"] == first
    assert fired["context-stuck"] == first + 1
    assert min(turn for turn, state in row["states"].items() if state.startswith("broken")) == first + 1
    assert row["last_state"] in ("recovering", "healthy")


@pytest.mark.capability(
    "issue 2 §1: the recorded run through `chat`: every trouble is called, the healthy conversation is left alone"
)
def test_the_recorded_shift_is_called_on_its_turn(recorded):
    """The context was full before, and the loss of history is told on the turn on which it happened."""
    row = recorded["shift"]
    assert row["first_fired"]["context-full"] < row["first_fired"]["history-truncated"] == row["trouble"][0]


@pytest.mark.capability(
    "issue 2 §1: the recorded run through `chat`: every trouble is called, the healthy conversation is left alone"
)
def test_the_recorded_slowdown_is_called_while_it_lasts(recorded):
    """Called on the third to fifth slow turn, and over within eight turns after the other streams ended."""
    row = recorded["slowed"]
    called = min(turn for rule, turn in row["first_fired"].items() if rule.startswith("itl-"))
    assert row["trouble"][2] <= called <= row["trouble"][4]
    assert min(row["states"]) >= row["trouble"][0]
    assert row["last_state"] == "healthy"


def states(engine: Engine, turns: Iterator[Turn] | list[Turn]) -> list[str]:
    """Give the state after every turn, repetitions left out."""
    found: list[str] = []
    for turn in turns:
        state = engine.evaluate(turn).state
        found += [state] if found[-1:] != [state] else []
    return found


@pytest.mark.capability("issue 2 §4: half-open, probes and back-off live in the pack's machine")
def test_the_way_back_backs_off():
    """A model that stays ill is probed after 5 turns, then after 20 each; well again, three good probes close."""
    engine = Engine.load("chat")

    def answer(number: int, is_ill: bool) -> list[str]:
        waits = []
        for _ in range(number):
            decision = engine.evaluate(Turn(session_id="s", error="server" if is_ill else "none"))
            waits.append(decision.state)
        return waits

    ill = answer(60, is_ill=True)
    opened = [k for k, state in enumerate(ill) if state.startswith("broken") and (k == 0 or ill[k - 1] != state)]
    probed = [k for k, state in enumerate(ill) if state == "recovering"]
    assert ill[opened[0]] == "broken"
    assert {ill[k] for k in opened[1:]} == {"broken-again"}
    assert [p - o for o, p in zip(opened, probed, strict=False)] == [5, 20, 20][: len(probed)]
    well = answer(40, is_ill=False)
    assert well[-1] == "healthy"
    assert well.count("recovering") == 3


def test_a_light_model_neither_closes_nor_opens_the_breaker():
    """The light model's speed is no evidence about the real one: the state follows its own clock."""
    engine = Engine.load("chat")
    big = [Turn(session_id="s", model="big", itl_ms=40.0)] * 10 + [Turn(session_id="s", model="big", itl_ms=120.0)] * 3
    assert states(engine, big) == ["healthy", "broken"]
    light = [Turn(session_id="s", model="light", itl_ms=5.0)] * 5
    assert states(engine, light) == ["broken", "recovering"]
    assert states(engine, [Turn(session_id="s", model="big", itl_ms=40.0)] * 3) == ["recovering", "healthy"]


@pytest.mark.parametrize("act", ["trim_context", "reset_context", "rollback_snapshot", "insert_summary", "evict_kv"])
def test_our_own_act_is_no_symptom(act):
    """A rewritten prompt loses its prefix and its length on one turn, and no rule says a word."""
    engine = Engine.load("chat")
    turns = list(perfect(FAMILIES["vLLM, 70B, prefix cache"], 5))[:60]
    for turn in turns[:40]:
        assert engine.evaluate(turn).matches == ()
    last = turns[39]
    receipt = engine.evaluate(attrs.evolve(turns[40])).receipt([act])
    shorter = 0.5 if act in ("trim_context", "reset_context", "rollback_snapshot") else 1.02
    size = round(last.input_tokens * shorter)
    changes = {"ttft_ms": 6000.0, "prefill_ms": 5900.0, "cached_tokens": 16, "applied": receipt, "top_token_ids": None}
    for number in range(10):
        now = size + 200 * number
        turn = attrs.evolve(
            turns[41 + number],
            sent_tokens=now,
            input_tokens=now,
            position_ids=np.arange(now - 8, now),
            **(changes if number == 0 else {"cached_tokens": round(0.95 * now)}),
        )
        decision = engine.evaluate(turn)
        assert (number, [m.rule for m in decision.matches], decision.state) == (number, [], "healthy")
