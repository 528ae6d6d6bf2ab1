"""What the shipped packs say about real runs: the figures that their thresholds cite.

    python benchmarks/subjects/replay_real.py --data DIR [--json]

DIR holds `traces/` and `dialogues/`. Printed:

burstgpt   one vLLM server at eight load levels, requests and engine samples joined on time: how often and how long
           `replica-saturated` matches, beside the greatest KV usage
llmperf    13 hosted endpoints, each a conversation: latency rules that fired (per 1,000 turns), of them in the calmer
           half of the endpoint, and refusals with the turn on which they were called
recording  the shipped recording: when trouble began, when it was called, what was said before
topics     labelled dialogues through `intent`: breaks and churn
profiles   endpoints and recording through every profile and engine pack: alarms, of them in calm halves; rules fired in
           the healthy conversation; the turn on which each trouble was first called
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from stabilitykit import Engine, Turn
from stabilitykit.compiled.program import build_program
from stabilitykit.detectors import DETECTORS
from stabilitykit.engine.replay import Entry, Step, merge_on_time, replay
from stabilitykit.rules.load import load_pack
from stabilitykit.sample import Sample
from stabilitykit.turn import MISSING

SCALES = (100, 200, 400, 500, 700, 800, 1000, 1500)
RECORDING = Path(__file__).resolve().parents[2] / "stabilitykit" / "data" / "recordings" / "llamacpp_smollm2.jsonl"
ARRAYS = {"top_token_ids": np.int64, "top_logprobs": np.float32}
FIELDS = frozenset(a.name for a in attrs.fields(Turn))
ERRORS = {None: "none", 429: "rate_limited", -1: "server", -100: "none"}
"""llmperf's codes; -100: the answer came but was shorter than the benchmark wanted."""
DIALOGUES = ("tiage", "dialseg711", "sgd")
WARM, SLOWER = 30, (1.5, 2.0, 3.0, 5.0)
PROFILES = ("technical", "creative", "agent", "vllm", "sglang", "llamacpp", "ollama", "api")
CALM_TURNS = 10
"""A half with fewer timed answers says nothing about calm."""

Row = dict[str, Any]


def burst_entries(data: Path, scale: int) -> Iterator[Entry]:
    """Give the samples and requests of one load level in the order of time; each request is a conversation."""
    with (data / "traces" / f"burstgpt_vllm_scale{scale}_engine.csv").open(encoding="utf-8") as file:
        samples = [burst_sample(row) for row in csv.DictReader(file)]
    with (data / "traces" / f"burstgpt_vllm_scale{scale}_requests.csv").open(encoding="utf-8") as file:
        turns = [burst_turn(row) for row in csv.DictReader(file)]
    return merge_on_time([samples, turns])


def burst_sample(row: Row) -> Sample:
    return Sample(
        replica="vllm",
        timestamp_s=float(row["timestamp"]),
        signals={
            "running_requests": float(row["num_running"]),
            "waiting_requests": float(row["num_pending"]),
            "kv_usage_ratio": float(row["gpu_kvcache_usage"]) / 100.0,  # the file says percent
        },
    )


def burst_turn(row: Row) -> Turn:
    first, total, tokens = float(row["first_chunk_time"]), float(row["total_chunk_time"]), float(row["sampled_out_len"])
    return Turn(
        session_id=row["event_id"],
        replica="vllm",
        timestamp_s=float(row["record_time"]),
        ttft_ms=first * 1e3,
        rt_ms=total * 1e3,
        itl_ms=(total - first) * 1e3 / (tokens - 1) if tokens > 1 else float("nan"),
        input_tokens=float(row["sampled_in_num"]),
        output_tokens=tokens,
        error="none",
    )


def burst(data: Path) -> dict[str, Row]:
    """Replay every load level through `chat`."""
    return {str(scale): burst_level(burst_entries(data, scale)) for scale in SCALES}


def burst_level(entries: Iterator[Entry]) -> Row:
    steps = list(replay(Engine.load("chat"), entries))
    samples = [step for step in steps if isinstance(step.entry, Sample)]
    saturated = [matches(step, "replica-saturated") for step in samples]
    episodes = [len(list(run)) for is_on, run in groupby(saturated) if is_on]
    turns = [step for step in steps if isinstance(step.entry, Turn)]
    return {
        "samples": len(samples),
        "requests": len(turns),
        "episodes": len(episodes),
        "saturated_samples": sum(episodes),
        "refuse_new": sum(a.name == "refuse_new" for step in samples for a in step.decision.actions),
        "requests_on_saturated": sum(step.decision.scopes["replica"] != "healthy" for step in turns),
        "troubled_conversations": sum(step.decision.state != "healthy" for step in turns),
        "greatest_kv_usage": round(max(float(s.entry.signals["kv_usage_ratio"]) for s in samples), 3),  # type: ignore[union-attr]
    }


def matches(step: Step, rule: str) -> bool:
    return any(m.rule == rule for m in step.decision.matches)


def llmperf_turns(data: Path) -> dict[str, list[Turn]]:
    """Give every endpoint's requests in their order, as turns of one conversation."""
    turns: dict[str, list[Turn]] = defaultdict(list)
    for line in (data / "traces" / "llmperf_individual.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        turns[row["endpoint"]].append(llmperf_turn(row))
    return dict(turns)


def llmperf_turn(row: Row) -> Turn:
    turn = Turn(session_id=row["endpoint"], model=row["endpoint"], error=ERRORS[row["error_code"]])
    if turn.error != "none":
        return turn
    tokens, first, total = row["number_output_tokens"], row["ttft_s"], row["end_to_end_latency_s"]
    turn.ttft_ms, turn.rt_ms = first * 1e3, total * 1e3
    if tokens > 1:
        # Of short answers the file's own column is the whole time, so the gap is computed for all.
        turn.itl_ms = (total - first) * 1e3 / (tokens - 1)
        turn.decode_tokens_per_s = 1e3 / turn.itl_ms if turn.itl_ms else MISSING
    turn.input_tokens, turn.output_tokens = row["number_input_tokens"], tokens
    return turn


def llmperf(data: Path) -> Row:
    """Replay every endpoint through `chat`, and count what the latency rules said."""
    conversations = llmperf_turns(data)
    endpoints = {name: llmperf_endpoint(turns, "chat") for name, turns in conversations.items()}
    turns = sum(e["turns"] for e in endpoints.values())
    calm = sum(e["calm_turns"] for e in endpoints.values())
    return {
        "endpoints": endpoints,
        "turns": turns,
        "alarms_per_1000_turns": round(1000 * sum(e["alarms"] for e in endpoints.values()) / turns, 2),
        "calm_turns": calm,
        "false_alarms": sum(e["calm_alarms"] for e in endpoints.values()),
        "false_alarms_per_1000_calm_turns": round(1000 * sum(e["calm_alarms"] for e in endpoints.values()) / calm, 2),
        "slowed_by": {str(factor): slowed(conversations, factor) for factor in SLOWER},
        "slowest_steady_ttft_ms": round(max(e["ttft_p99_ms"] for e in endpoints.values() if e["is_steady"])),
    }


def llmperf_endpoint(turns: list[Turn], pack: str) -> Row:
    engine = Engine.load(pack)
    steps = list(replay(engine, turns))
    tags = {r.id: r.tags for r in engine.pack.rules}
    alarms = [sum("latency" in tags[rule] for rule in step.decision.fired) for step in steps]
    middle = len(turns) // 2
    halves = (slice(0, middle), slice(middle, None))
    timed = {part.stop: gaps(turns[part]) for part in halves}
    calm = min((p for p in halves if len(timed[p.stop]) >= CALM_TURNS), key=lambda p: spread(timed[p.stop]))
    refused = [k for k, t in enumerate(turns, 1) if t.error != "none"]
    called = [k for k, s in enumerate(steps, 1) if matches(s, "rate-limited") or matches(s, "server-errors")]
    ttft = np.array([t.ttft_ms for t in turns if t.error == "none"])
    return {
        "turns": len(turns),
        "alarms": sum(alarms),
        "calm_turns": len(turns[calm]),
        "calm_alarms": sum(alarms[calm]),
        "itl_spread": round(spread(gaps(turns)), 1),
        "ttft_p99_ms": round(float(np.quantile(ttft, 0.99))),
        "is_steady": bool(np.quantile(ttft, 0.99) < 3 * np.median(ttft)),
        "refused": len(refused),
        "first_refused": refused[0] if refused else None,
        "first_called": called[0] if called else None,
        "states": sorted({s.decision.state for s in steps}),
    }


def slowed(conversations: dict[str, list[Turn]], factor: float) -> Row:
    """Slow every endpoint down after WARM timed answers: on which answer after that is it called?"""
    delays = [called_after(turns, factor) for turns in conversations.values() if len(gaps(turns)) >= 2 * WARM]
    called = [d for d in delays if d is not None]
    return {"endpoints": len(delays), "missed": len(delays) - len(called), "median_answers": float(np.median(called))}


def called_after(turns: list[Turn], factor: float) -> int | None:
    engine = Engine.load("latency")
    timed = [turn for turn in turns if turn.itl_ms == turn.itl_ms]
    for number, turn in enumerate(timed):
        slower = factor if number >= WARM else 1.0
        state = engine.evaluate(attrs.evolve(turn, itl_ms=turn.itl_ms * slower)).state
        if number >= WARM and state != "healthy":
            return number - WARM + 1
    return None


def gaps(turns: list[Turn]) -> list[float]:
    return [t.itl_ms for t in turns if t.itl_ms == t.itl_ms]


def spread(values: list[float]) -> float:
    return max(values) / float(np.median(values))


def recording_entries(path: Path = RECORDING) -> Iterator[tuple[Row, Entry]]:
    """Give each line of the shipped recording with its turn or sample."""
    with np.load(path.with_name(path.stem + ".embeddings.npz")) as vectors:
        embeddings = {name: vectors[name].astype(np.float32) for name in vectors.files}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if "observe" in row:
            known = dict(row["observe"])
            yield row, Sample(replica=known.pop("replica"), timestamp_s=known.pop("timestamp_s"), signals=known)
            continue
        given = {k: v for k, v in row.items() if k in FIELDS and v is not None}
        given |= {k: np.asarray(given[k], dtype) for k, dtype in ARRAYS.items() if k in given}
        given["embedding"] = embeddings[row["session_id"]][row["turn_id"] - 1]
        yield row, Turn(**given)


def is_trouble(row: Row) -> bool:
    """Say whether the recording itself marks the turn: a refusal, a shift, other streams."""
    return bool(row.get("error", "none") != "none" or row.get("is_history_truncated") or row.get("competing_streams"))


def recording(pack: str = "chat") -> dict[str, Row]:
    """Replay the shipped recording through a pack."""
    engine = Engine.load(pack)
    walked: dict[str, list[tuple[Row, Step]]] = defaultdict(list)
    pairs = list(recording_entries())
    for (row, _), step in zip(pairs, replay(engine, (entry for _, entry in pairs)), strict=True):
        if isinstance(step.entry, Turn):
            walked[row["scenario"]].append((row, step))
    return {scenario: recorded_conversation(engine, pairs) for scenario, pairs in walked.items()}


def recorded_conversation(engine: Engine, pairs: list[tuple[Row, Step]]) -> Row:
    loud = {r.id for r in engine.pack.rules if r.severity != "info"}
    fired: dict[str, int] = {}
    for row, step in pairs:
        for rule in step.decision.fired:
            fired.setdefault(rule, row["turn_id"])
    told = [r for r, _ in pairs if r.get("input_tokens")]
    usage = [(r["input_tokens"] + r["output_tokens"]) / r["context_window_tokens"] for r in told]
    hits = [r["cached_tokens"] / r["input_tokens"] for r, _ in pairs if r.get("cached_tokens") is not None]
    return {
        "turns": len(pairs),
        "trouble": [row["turn_id"] for row, _ in pairs if is_trouble(row)],
        "first_fired": {rule: turn for rule, turn in fired.items() if rule in loud},
        "info_fired": {rule: turn for rule, turn in fired.items() if rule not in loud},
        "states": {row["turn_id"]: s.decision.state for row, s in pairs if s.decision.state != s.decision.previous},
        "last_state": pairs[-1][1].decision.state,
        "greatest_turn_share": round(float(np.max(np.diff(usage))), 3),
        "median_hit_ratio": round(float(np.median(hits)), 2),
        "lowest_hit_share": round(min(hits[1:]) / float(np.median(hits)), 2),
    }


def profiles(data: Path) -> dict[str, Row]:
    """Replay the endpoints and the recording through every profile and engine: alarms where nothing was wrong."""
    conversations = llmperf_turns(data)
    return {pack: profile(conversations, pack) for pack in PROFILES}


def profile(conversations: dict[str, list[Turn]], pack: str) -> Row:
    endpoints = [llmperf_endpoint(turns, pack) for turns in conversations.values()]
    replayed = recording(pack)
    return {
        "alarms": sum(e["alarms"] for e in endpoints),
        "false_alarms": sum(e["calm_alarms"] for e in endpoints),
        "healthy_recording": replayed["healthy"]["first_fired"],
        "first_called": {name: min(row["states"]) for name, row in replayed.items() if row["states"]},
    }


def topics(data: Path) -> dict[str, Row]:
    """Run labelled dialogues through `intent`: breaks by label, churn."""
    from benchmarks.subjects.drift_defaults import load

    return {name: topics_of(load(data / "dialogues", name)) for name in DIALOGUES}


def topics_of(dialogues: list[Any]) -> Row:
    engine = Engine.load("intent", capacity=len(dialogues) + 1)
    within, shifted, churn = [], [], 0
    for number, (vectors, labels) in enumerate(dialogues):
        steps = list(replay(engine, (Turn(session_id=str(number), embedding=v) for v in vectors)))
        breaks = np.array([matches(step, "topic-break") for step in steps[1:]])
        within += breaks[labels[1:] == 0].tolist()
        shifted += breaks[labels[1:] == 1].tolist()
        churn += sum("topic-churn" in step.decision.fired for step in steps)
    turns = len(within) + len(shifted)
    return {
        "turns": turns,
        "breaks_within_topic": round(float(np.mean(within)), 3),
        "breaks_on_shift": round(float(np.mean(shifted)), 3),
        "churn_per_1000_turns": round(1000 * churn / turns, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = build_program(load_pack("chat", detectors=DETECTORS)).rows
    result: Row = {
        "burstgpt": burst(given.data),
        "llmperf": llmperf(given.data),
        "recording": recording(),
        "topics": topics(given.data),
        "profiles": profiles(given.data),
        "chat": {
            "session_row_bytes": rows[0].nbytes,
            "vector_bytes": 4 * rows[0].vector,
            "replica_row_bytes": rows[1].nbytes,
        },
    }
    if given.json:
        print(json.dumps(result))
        return
    for name, table in result.items():
        print(name)
        for key, value in table.items():
            if key == "endpoints":
                for endpoint, row in value.items():
                    print(f"  {endpoint:16s}", json.dumps(row))
            else:
                print(f"  {key:16s}", json.dumps(value))


if __name__ == "__main__":
    main()
