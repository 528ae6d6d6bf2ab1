"""The four conversations: a healthy one and three that meet trouble."""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.record.client import Reply, count_tokens, replica_sample, slot_window, stream_chat
from benchmarks.record.server import MODEL, LlamaServer, ServerSettings

__all__ = [
    "PROMPTS",
    "REPLICA",
    "SCENARIOS",
    "Record",
    "Scenario",
    "load_prompts",
    "read_records",
    "run_scenario",
    "scenario_of",
    "session_id",
    "timestamp_of",
]

PROMPTS = Path(__file__).with_name("prompts.json")
REPLICA = "llamacpp-"
_ERRORS = {"exceed_context_size_error": "context_overflow", "unavailable_error": "server"}
_SAMPLE_EVERY_S = 0.5
_THINK_S = 0.25
_SEED = 20_261_130
Record = dict[str, Any]
Messages = list[dict[str, str]]


@dataclass(frozen=True)
class Scenario:
    """One conversation.

    Parameters
    ----------
    name
        Key of the prompts, and the ``scenario`` of the records.
    server
        How its server is started.
    max_tokens
        Longest answer.
    reset_after_errors
        The host forgets the history after so many refused turns in a row (0: never).
    trims_to_half
        When the prompt no longer fits, the host drops its oldest exchanges until half a window is free.
    competing_turns
        First and last turn during which other streams run (empty: none run).
    """

    name: str
    server: ServerSettings
    max_tokens: int
    reset_after_errors: int = 0
    trims_to_half: bool = False
    competing_turns: tuple[int, ...] = ()


SCENARIOS = (
    Scenario("healthy", ServerSettings(n_ctx=4096), max_tokens=24),
    Scenario("overflow", ServerSettings(n_ctx=1280), max_tokens=64, reset_after_errors=3),
    Scenario("shift", ServerSettings(n_ctx=1024, context_shift=True, n_keep=32), max_tokens=96, trims_to_half=True),
    Scenario("slowed", ServerSettings(n_ctx=8192, n_parallel=4), max_tokens=24, competing_turns=(11, 17)),
)


def load_prompts() -> dict[str, dict[str, Any]]:
    """Read the fixed prompt set."""
    prompts: dict[str, dict[str, Any]] = json.loads(PROMPTS.read_text(encoding="utf-8"))
    return prompts


def session_id(name: str) -> str:
    """Give the UUIDv4 of a scenario's conversation: the same in every recording."""
    return str(uuid.UUID(int=random.Random(f"{_SEED}:{name}").getrandbits(128), version=4))


@contextmanager
def _sampling(server: LlamaServer, out: list[Record]) -> Iterator[None]:
    """Scrape the replica at a steady pace while the conversation runs."""
    stop = threading.Event()

    def scrape() -> None:
        while not stop.wait(_SAMPLE_EVERY_S):
            out.append(replica_sample(server.port, server.replica))

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


class _Competitors:
    """Streams of other conversations that load the same server until they are stopped."""

    def __init__(self, server: LlamaServer, prompts: dict[str, Any]) -> None:
        self._server = server
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._loop, args=(number, prompts["system"], text))
            for number, text in enumerate(prompts["user"])
        ]

    def start(self) -> int:
        """Start them and give how many there are."""
        for thread in self._threads:
            thread.start()
        return len(self._threads)

    def _loop(self, number: int, system: str, text: str) -> None:
        seed = 1000 * (number + 1)
        while not self._stop.is_set():
            seed += 1
            # The number of the round stands first, so that no prompt is served from the cache.
            messages = [{"role": "system", "content": system}, {"role": "user", "content": f"Story {seed}. {text}"}]
            stream_chat(self._server.port, messages, 96, seed)

    def stop(self) -> None:
        """Let every stream finish its answer."""
        self._stop.set()
        for thread in self._threads:
            thread.join()


def _round(value: float) -> float:
    return round(value, 2)


def _measured(reply: Reply) -> Record:
    """Translate what the client saw; what is not known is left out."""
    row: Record = {"http_status": reply.http_status, "rt_ms": _round(1e3 * (reply.end_s - reply.sent_s))}
    row["error"] = _ERRORS.get(reply.error_type, "server") if reply.error_type else "none"
    if (ttft := reply.ttft_ms()) is not None:
        row["ttft_ms"] = _round(ttft)
    if gaps := reply.gaps_ms():
        row["itl_ms"] = _round(sum(gaps) / len(gaps))
        row["itl_ms_per_token"] = [_round(gap) for gap in gaps]
    if reply.usage:
        row["input_tokens"] = reply.usage["prompt_tokens"]
        row["output_tokens"] = reply.usage["completion_tokens"]
        row["cached_tokens"] = reply.usage["prompt_tokens_details"]["cached_tokens"]
    if reply.timings:
        row["prefill_ms"] = _round(reply.timings["prompt_ms"])
        row["decode_tokens_per_s"] = _round(reply.timings["predicted_per_second"])
    if reply.finish_reason:
        row["finish_reason"] = reply.finish_reason
    if reply.top:
        row["top_token_ids"] = [int(entry["id"]) for entry in reply.top]
        row["top_logprobs"] = [round(float(entry["logprob"]), 4) for entry in reply.top]
    return row


class _Host:
    """The application: it keeps the history, sends it, and does what real hosts do when it is refused."""

    def __init__(self, scenario: Scenario, server: LlamaServer, system: str) -> None:
        self._scenario = scenario
        self._server = server
        self._window = slot_window(server.port)
        self._history: Messages = [{"role": "system", "content": system}]
        self._refused = 0
        self._turn = 0

    def warm(self) -> None:
        """Have the system prompt in the cache before the first turn, as a host at work has it."""
        stream_chat(self._server.port, [*self._history, {"role": "user", "content": "Hello"}], 1, _SEED)
        self._server.shifts()

    def _shorten(self, messages: Messages) -> tuple[Messages, bool]:
        """Reset or trim the history where the scenario says so; tell whether anything was dropped."""
        limit = self._scenario.reset_after_errors
        if limit and self._refused >= limit:
            self._refused = 0
            return [messages[0], messages[-1]], True
        window = self._window
        if not self._scenario.trims_to_half or count_tokens(self._server.port, messages) < window:
            return messages, False
        while count_tokens(self._server.port, messages) > window // 2:
            messages = [messages[0], *messages[3:]]
        return messages, True

    def ask(self, text: str, competing: int) -> Record:
        """Play one turn and give its record."""
        self._turn += 1
        messages, trimmed = self._shorten([*self._history, {"role": "user", "content": text}])
        sent_tokens = count_tokens(self._server.port, messages)
        reply = stream_chat(self._server.port, messages, self._scenario.max_tokens, _SEED + self._turn)
        row: Record = {
            "session_id": session_id(self._scenario.name),
            "turn_id": self._turn,
            "timestamp_s": round(time.time(), 3),
            "model": MODEL,
            "replica": self._server.replica,
            "scenario": self._scenario.name,
            "sent_tokens": sent_tokens,
            "context_window_tokens": self._window,
            "is_host_trimmed": trimmed,
            **_measured(reply),
            **self._evidence(competing),
        }
        if row["error"] == "none":
            self._history = [*messages, {"role": "assistant", "content": reply.text}]
            self._refused = 0
        else:
            self._refused += 1
        return row

    def _evidence(self, competing: int) -> Record:
        """What was done to this turn, from the server's log and from the scenario itself."""
        if self._scenario.server.n_parallel > 1:
            return {"is_history_truncated": False, "competing_streams": competing}
        time.sleep(0.05)  # the log line of the release follows the last chunk
        report = self._server.shifts()
        row: Record = {"is_history_truncated": report.shift_count > 0}
        if report.is_truncated is not None:
            row["is_server_truncated"] = report.is_truncated
        if self._scenario.server.context_shift:
            row["shift_count"] = report.shift_count
            row["shift_discarded_tokens"] = report.discarded_tokens
        return row


def run_scenario(scenario: Scenario) -> list[Record]:
    """Start the server, hold the conversation, and give turns and samples in the order of time."""
    prompts = load_prompts()
    turns: list[Record] = []
    samples: list[Record] = []
    with LlamaServer(scenario.server, REPLICA + scenario.name) as server:
        host = _Host(scenario, server, prompts[scenario.name]["system"])
        host.warm()
        others = _Competitors(server, prompts["competitors"])
        competing = 0
        with _sampling(server, samples):
            for number, text in enumerate(prompts[scenario.name]["user"], start=1):
                if scenario.competing_turns and number == scenario.competing_turns[0]:
                    competing = others.start()
                    time.sleep(1.0)
                turns.append(host.ask(text, competing))
                if competing and number == scenario.competing_turns[1]:
                    others.stop()
                    competing = 0
                time.sleep(_THINK_S)
    return sorted(turns + samples, key=timestamp_of)


def read_records(path: Path) -> list[Record]:
    """Read a recording."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def timestamp_of(record: Record) -> float:
    """Give when a turn ended or a sample was taken."""
    return float(record.get("observe", record)["timestamp_s"])


def scenario_of(record: Record) -> str:
    """Give the scenario of a turn or of a sample (a replica serves one scenario)."""
    if "observe" in record:
        return str(record["observe"]["replica"]).removeprefix(REPLICA)
    return str(record["scenario"])
