from __future__ import annotations

import json
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit import Engine, Turn
from stabilitykit.detectors.latency_attribution import LATENCY_ATTRIBUTION
from stabilitykit.detectors.trace import Instance, trace
from tests.detectors.agreement import check_compiled, check_twins
from tests.naive.latency_attribution import LatencyAttributionTwin

RECORDING = "stabilitykit/data/recordings/llamacpp_smollm2.jsonl"
NAMES = {"rt": "rt_ms", "ttft": "ttft_ms", "itl": "itl_ms", "tokens": "output_tokens"}
SHARES = ("rt_share", "ttft_share", "itl_share")
DURATION = st.one_of(
    st.none(),
    st.floats(0.0, 1e9),
    st.sampled_from([0.0, 20.0, 40.0, 41.0, 100.0, 400.0, -1.0, math.nan, math.inf]),
)
TURNS = st.fixed_dictionaries(
    {
        "rt": DURATION,
        "ttft": DURATION,
        "itl": DURATION,
        "tokens": st.one_of(st.none(), st.sampled_from([0.0, 1.0, 2.0, 30.0, 2.0**40])),
    }
)
SETTINGS = st.fixed_dictionaries(
    {
        "rt_weight": st.sampled_from([0.0, 0.4, 1.0]),
        "ttft_weight": st.sampled_from([0.0, 0.35]),
        "itl_weight": st.sampled_from([0.25, 1.0]),
        "alpha": st.sampled_from([0.05, 0.5, 1.0]),
        "warmup": st.integers(1, 4),
        "limit": st.sampled_from([1.0, 2.0, 10.0]),
        "max_freeze": st.integers(1, 4),
        "tolerance": st.sampled_from([0.0, 0.02, 1.0]),
    }
)
USUAL = {"rt": 3000.0, "ttft": 500.0, "itl": 25.0, "tokens": 101.0}


def clean(rows):
    """Give rows as a host's NaN and infinities reach a twin: unknown."""
    return [{k: v if v is not None and math.isfinite(v) else None for k, v in row.items()} for row in rows]


@pytest.mark.capability("issue 3 §1: RT / TTFT / ITL attribution is its naive twin")
@given(st.lists(TURNS, max_size=20), SETTINGS)
def test_equals_the_naive_twin(rows, settings):
    """Any durations, unknown, negative and infinite ones among them: kernel and twin agree."""
    check_twins(LATENCY_ATTRIBUTION, LatencyAttributionTwin, clean(rows), settings)


@given(st.lists(TURNS, max_size=12), SETTINGS)
def test_compiled_equals_plain(rows, settings):
    """Machine code gives the same bits and the same memory."""
    check_compiled(LATENCY_ATTRIBUTION, rows, settings)


@pytest.mark.capability("issue 3 §1: attribution weighs .40 / .35 / .25 of what is above the baseline, as shares")
@given(*[st.floats(0.01, 100.0)] * 3)
def test_shares_are_the_sources_formula(a, b, c):
    """Against the formula on one turn: w * max(0, x / baseline - 1) over its sum; the shares sum to 1."""
    factors = dict(zip(("rt", "ttft", "itl"), (a, b, c), strict=True))
    turn = {name: USUAL[name] * factor for name, factor in factors.items()}
    out = trace(LATENCY_ATTRIBUTION, [*[USUAL] * 8, turn])[-1]
    weighted = [w * max(0.0, f - 1) for w, f in zip((0.40, 0.35, 0.25), (a, b, c), strict=True)]
    assert out["excess"] == pytest.approx(sum(weighted), abs=1e-9)
    if sum(weighted) > 1e-9:
        assert [out[s] for s in SHARES] == pytest.approx([v / sum(weighted) for v in weighted], abs=1e-6)
        assert sum(out[s] for s in SHARES) == pytest.approx(1.0)


@pytest.mark.capability("issue 3 §1: attribution: nothing above its baseline, no attribution")
def test_nothing_above_is_attributed_to_nothing():
    """As usual, or faster: excess 0 and no shares."""
    for out in trace(LATENCY_ATTRIBUTION, [*[USUAL] * 8, USUAL, USUAL | {"ttft": 100.0}])[8:]:
        assert out["excess"] == 0.0
        assert all(math.isnan(out[s]) for s in SHARES)


@pytest.mark.parametrize("part", ["rt", "ttft", "itl"])
def test_a_negative_duration_is_unknown(part):
    """No shares, no residual, and nothing is learned from it."""
    detector, twin = Instance(LATENCY_ATTRIBUTION), Instance(LATENCY_ATTRIBUTION)
    for _ in range(8):
        detector.update(USUAL)
        twin.update(USUAL)
    out = detector.update(USUAL | {part: -1.0})
    twin.update(USUAL | {part: None})
    assert all(math.isnan(v) for v in out.values())
    assert (detector.memory[0] == twin.memory[0]).all()


def test_a_fault_is_not_learned_but_a_new_level_is():
    """Three times the usual gap stays above the mean for 49 turns; the fiftieth starts it afresh."""
    slow = USUAL | {"itl": 75.0}
    out = trace(LATENCY_ATTRIBUTION, [*[USUAL] * 8, *[slow] * 58])
    assert [t["excess"] for t in out[8:58]] == pytest.approx([0.5] * 50)
    assert out[-1]["excess"] == 0.0


def recorded(root):
    """Give the turns of the recording that bring all four numbers, by scenario."""
    told: dict[str, list[dict[str, float]]] = {}
    for line in (root / RECORDING).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if all(name in row for name in NAMES.values()) and row["output_tokens"] > 1:
            told.setdefault(row["scenario"], []).append({k: row[name] for k, name in NAMES.items()})
    return told


@pytest.mark.capability("issue 3 §1: RT = TTFT + the gaps between tokens, checked on every turn of a recorded server")
def test_the_identity_holds_on_a_real_server(root):
    """Every recorded turn is consistent, at a tolerance of about half the default; one gap more in each is not."""
    turns = [turn for rows in recorded(root).values() for turn in rows]
    assert len(turns) > 80
    out = trace(LATENCY_ATTRIBUTION, turns)
    assert max(abs(t["residual_ms"]) / row["rt"] for t, row in zip(out, turns, strict=True)) < 0.011
    assert all(t["is_consistent"] == 1 for t in out)
    wrong = trace(LATENCY_ATTRIBUTION, [t | {"tokens": t["tokens"] + 1} for t in turns if t["tokens"] <= 30])
    assert sum(t["is_consistent"] == 0 for t in wrong) > 0.9 * len(wrong)


@pytest.mark.capability("issue 3 §1: attribution names the gaps when other streams slow a real server down")
def test_a_slowed_server_is_attributed_to_its_gaps(root):
    """Three competing streams on the recorded server: with the response time out of it, the gaps hold the most."""
    rows = recorded(root)["slowed"]
    out = trace(LATENCY_ATTRIBUTION, rows, {"rt_weight": 0.0, "warmup": 5})
    slow = [t for t, row in zip(out, rows, strict=True) if t["excess"] > 0.25 and row["itl"] > 60.0]
    assert len(slow) >= 5
    assert sum(t["itl_share"] > 0.5 for t in slow) > 0.6 * len(slow)


@pytest.mark.capability("issue 3 §1: pack `attribution` fires where other streams slowed a recorded server")
def test_the_pack_names_the_gaps_of_a_slowed_server(root):
    """The recorded conversation through the pack: `slow-gaps` fires while others stream, no turn is inconsistent."""
    engine, fired = Engine.load("attribution"), []
    for line in (root / RECORDING).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row.get("scenario") == "slowed":
            times = {name: row.get(name) for name in NAMES.values()}
            decision = engine.evaluate(Turn(session_id=row["session_id"], turn_id=row["turn_id"], **times))
            fired += [(rule, row["competing_streams"]) for rule in decision.fired]
    assert ("slow-gaps", 3) in fired
    assert {rule for rule, _ in fired} <= {"slow-gaps", "slow-first-token"}
    assert ("slow-gaps", 0) not in fired


@pytest.mark.capability("issue 3 §1: a client that averages its gaps wrongly is told, on public llmperf runs")
def test_another_definition_of_the_gap_is_inconsistent(shared_data):
    """The public runs divide the whole response time by the tokens: hardly a turn is consistent; corrected, all are."""
    turns = [turn for rows in hosted(shared_data).values() for turn in rows]
    as_given = trace(LATENCY_ATTRIBUTION, turns)
    assert sum(t["is_consistent"] == 1 for t in as_given) < 0.3 * len(turns)
    assert all(t["is_consistent"] == 1 for t in trace(LATENCY_ATTRIBUTION, map(corrected, turns)))


def test_hosted_endpoints_are_silent(shared_data):
    """Thirteen endpoints, each a conversation: over the pack's excess on two turns in a row at most once each."""
    for name, rows in hosted(shared_data).items():
        over = [t["excess"] > 0.5 for t in trace(LATENCY_ATTRIBUTION, map(corrected, rows))]
        assert sum(a and b for a, b in pairwise(over)) <= 1, name


def corrected(turn):
    """Give a turn with its mean gap after the first token."""
    return turn | {"itl": (turn["rt"] - turn["ttft"]) / (turn["tokens"] - 1)}


def hosted(shared_data):
    """Give the turns of each hosted endpoint as its client told them."""
    told: dict[str, list[dict[str, float]]] = {}
    for line in (shared_data / "traces" / "llmperf_individual.jsonl").read_text(encoding="utf-8").splitlines():
        r = json.loads(line)
        if not r["error_code"] and r["number_output_tokens"] > 10:
            turn = {"rt": 1e3 * r["end_to_end_latency_s"], "ttft": 1e3 * r["ttft_s"]}
            gap = {"itl": 1e3 * r["inter_token_latency_s"], "tokens": r["number_output_tokens"]}
            told.setdefault(r["endpoint"], []).append(turn | gap)
    return told
