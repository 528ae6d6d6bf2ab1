"""Is a server overloaded, told without its queue: real runs of one vLLM server at several loads.

DIR holds `traces/burstgpt_vllm_scale*_{engine,requests}.csv`. Truth, second by second: the server's own queue
(`num_pending`) is not empty, and stays so for at least 5 s; a second belongs to it from the first of them on. Neither
`num_pending` nor `num_running`, which sits at its maximum meanwhile, is an input of ours or of the trivial lines.

ours       the pack `overload` at its default of 800 ms (from A5, fitted to nothing here), fed each second by what the
           host has open (`requests-wait`) or by what one scrape a second would count (`first-tokens-late`); and the
           first with a threshold chosen on the other runs
reference  the one-line rule on the queue itself: not empty for 5 s
source     A5: p99 of the time to first token above 800 ms in three periods of 30 s in a row
trivial    always; KV usage, and its growth over 10 s, with thresholds chosen on the other runs
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from benchmarks.subjects.report import Line, Report, Target
from stabilitykit import Engine

TITLE = "Overload of a server, without its queue"

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
HOLD_S, GAP_S, PERIOD_S, LIMIT_S = 5.0, 5.0, 30, 0.8
WAITS_MS = (100.0, 200.0, 300.0, 500.0, 800.0, 1200.0, 2000.0, 3000.0)
USAGES = (0.05, 0.1, 0.14, 0.18, 0.22, 0.26, 0.3)
GROWTHS = (0.0005, 0.001, 0.002, 0.003, 0.004, 0.006)
DRAWS = 1000


@attrs.frozen(eq=False)
class Run:
    """One run on a grid of seconds; the queue is for truth and reference only."""

    name: str
    seconds: Floats
    pending: Floats
    truth: Flags
    onsets: Sequence[tuple[float, float]]
    usage: Floats
    oldest_wait_ms: Floats
    first_token_ms: Sequence[Floats]


def load(data: Path) -> list[Run]:
    """Read every run that has an engine log and its requests, by load."""
    paths = (data / "traces").glob("burstgpt_vllm_scale*_engine.csv")
    return [run_of(path) for path in sorted(paths, key=lambda p: int(p.stem.split("scale")[1].split("_")[0]))]


def columns(path: Path, *names: str) -> list[Floats]:
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [np.array([float(row[name]) for row in rows]) for name in names]


def run_of(path: Path) -> Run:
    times, pending, usage = columns(path, "timestamp", "num_pending", "gpu_kvcache_usage")
    requests = path.with_name(path.name.replace("_engine", "_requests"))
    ended, total, first = columns(requests, "record_time", "total_chunk_time", "first_chunk_time")
    sent = ended - total
    answered = sent + first
    seconds = np.arange(np.ceil(times[0]), times[-1])
    at = np.searchsorted(times, seconds, side="right") - 1
    truth, onsets = overloaded(times, pending)
    waits = [seconds_waited(now, sent, answered) for now in seconds]
    firsts = [1000.0 * first[(answered > now - 1.0) & (answered <= now)] for now in seconds]
    name = path.stem.removesuffix("_engine")
    return Run(name, seconds, pending[at], truth[at], onsets, usage[at] / 100.0, 1000.0 * np.array(waits), firsts)


def seconds_waited(now: float, sent: Floats, answered: Floats) -> float:
    """Give how long the oldest request without a first token has waited."""
    open_ones = sent[(sent <= now) & (now < answered)]
    return float(now - open_ones.min()) if len(open_ones) else 0.0


def overloaded(times: Floats, pending: Floats) -> tuple[Flags, list[tuple[float, float]]]:
    """Mark the samples of every stretch of at least 5 s with a queue; a gap in the log ends a stretch."""
    marked, stretches, start = np.zeros(len(times), bool), [], 0
    for index in range(len(times) + 1):
        is_on = index < len(times) and pending[index] > 0
        if is_on and index > start and times[index] - times[index - 1] < GAP_S:
            continue
        if index > start and times[index - 1] - times[start] >= HOLD_S:
            marked[start:index] = True
            stretches.append((float(times[start]), float(times[index - 1])))
        start = index if is_on else index + 1
    return marked, stretches


def by_rule(rule: str, limit_ms: float | None = None) -> Callable[[Run], Flags]:
    """Run the shipped pack over a run, sample by sample, and tell when a rule matches."""
    engine = Engine.load("overload", params={} if limit_ms is None else {"first_token": limit_ms})

    def flags(run: Run) -> Flags:
        matched = []
        for now, wait, firsts in zip(run.seconds, run.oldest_wait_ms, run.first_token_ms, strict=True):
            signals: dict[str, Any] = {"oldest_wait_ms": float(wait)} if rule == "requests-wait" else {}
            if rule == "first-tokens-late" and len(firsts):
                signals["mean_ttft_ms"] = float(firsts.mean())
            signals = signals or {"kv_used_tokens": 0}  # a scrape in which nobody got a first token is a sample too
            decision = engine.observe(replica=run.name, timestamp_s=float(now), **signals)
            matched.append(any(match.rule == rule for match in decision.matches))
        return np.array(matched)

    return flags


def by_queue(run: Run) -> Flags:
    streak, flags = 0.0, []
    for pending in run.pending:
        streak = streak + 1 if pending > 0 else 0
        flags.append(streak >= HOLD_S)
    return np.array(flags)


def by_source(run: Run) -> Flags:
    """A5 on the first tokens of each period of 30 s."""
    periods = [run.first_token_ms[k : k + PERIOD_S] for k in range(0, len(run.seconds), PERIOD_S)]
    late = [bool(len(v := np.concatenate(p)) and np.quantile(v, 0.99) > 1000 * LIMIT_S) for p in periods]
    trips = [k >= 3 and all(late[k - 3 : k]) for k in range(len(periods))]  # known when the third has ended
    return np.repeat(trips, PERIOD_S)[: len(run.seconds)]


def growth(run: Run) -> Floats:
    before = np.concatenate([np.full(min(10, len(run.usage)), run.usage[0]), run.usage[:-10]])
    return (run.usage - before) / 10.0


def left_out(runs: Sequence[Run], flags: Mapping[float, Sequence[Flags]]) -> list[Flags]:
    """Take for each run the threshold that is best on the others: recall - false share, the greater of equals."""
    found = []
    for index in range(len(runs)):
        others = [k for k in range(len(runs)) if k != index]

        def merit(limit: float, others: Sequence[int] = others) -> tuple[float, float]:
            recall, false = shares([runs[k] for k in others], [flags[limit][k] for k in others])
            return recall - false, limit

        found.append(flags[max(flags, key=merit)][index])
    return found


def shares(runs: Sequence[Run], flags: Sequence[Flags]) -> tuple[float, float]:
    """Give the share of overloaded seconds that are flagged, and of the others."""
    truth, flagged = np.concatenate([r.truth for r in runs]), np.concatenate(list(flags))
    return float(flagged[truth].mean()) if truth.any() else 1.0, float(flagged[~truth].mean())


def delays(runs: Sequence[Run], flags: Sequence[Flags]) -> list[float]:
    """Give the seconds from the first queued request of each stretch to the first flag; its whole length for none."""
    found = []
    for run, flagged in zip(runs, flags, strict=True):
        for start, end in run.onsets:
            hits = run.seconds[flagged & (run.seconds >= start) & (run.seconds <= end)]
            found.append(float(hits[0] - start) if len(hits) else end - start)
    return found


def figures(runs: Sequence[Run], flags: Sequence[Flags]) -> dict[str, float]:
    recall, false = shares(runs, flags)
    return {"recall": recall, "false share": false, "median delay s": float(np.median(delays(runs, flags) or [0.0]))}


def line(method: str, kind: str, runs: Sequence[Run], flags: Sequence[Flags]) -> Line:
    """Score a method, with intervals from drawing whole runs."""
    rng, drawn = np.random.default_rng(11), []
    for _ in range(DRAWS):
        chosen = rng.integers(0, len(runs), len(runs))
        drawn.append(list(figures([runs[k] for k in chosen], [flags[k] for k in chosen]).values()))
    found = figures(runs, flags)
    low, high = np.quantile(np.array(drawn), [0.025, 0.975], axis=0, method="inverted_cdf")
    intervals = {n: (float(a), float(b)) for n, a, b in zip(found, low, high, strict=True)}
    return Line(of=f"{len(runs)} runs", method=method, kind=kind, figures=found, intervals=intervals)


def permuted(runs: Sequence[Run]) -> list[Run]:
    """Give every second the truth of another, of any run."""
    truth = np.random.default_rng(7).permutation(np.concatenate([r.truth for r in runs]))
    parts = np.split(truth, np.cumsum([len(r.truth) for r in runs])[:-1])
    return [attrs.evolve(r, truth=part, onsets=()) for r, part in zip(runs, parts, strict=True)]


def run(data: Path) -> Report:
    """Measure every line."""
    runs = load(data)
    by_wait = {limit: [flags(r) for r in runs] for limit in WAITS_MS for flags in [by_rule("requests-wait", limit)]}
    shipped = [flags(r) for flags in [by_rule("requests-wait")] for r in runs]
    late = [flags(r) for flags in [by_rule("first-tokens-late")] for r in runs]
    by_usage = {limit: [r.usage > limit for r in runs] for limit in USAGES}
    by_growth = {limit: [growth(r) > limit for r in runs] for limit in GROWTHS}
    check = line("requests-wait, permuted truth", "check", permuted(runs), shipped)
    ours = line("requests-wait, 800 ms as shipped", "ours", runs, shipped)
    lines = [
        line("always", "trivial", runs, [np.ones(len(r.seconds), bool) for r in runs]),
        line("KV usage, threshold left out", "trivial", runs, left_out(runs, by_usage)),
        line("KV growth, threshold left out", "trivial", runs, left_out(runs, by_growth)),
        line("A5: p99 TTFT, three periods", "source", runs, [by_source(r) for r in runs]),
        line("queue not empty for 5 s", "reference", runs, [by_queue(r) for r in runs]),
        line("first-tokens-late, one scrape a second", "ours", runs, late),
        line("requests-wait, threshold left out", "ours", runs, left_out(runs, by_wait)),
        ours,
        attrs.evolve(check, figures={n: v for n, v in check.figures.items() if "delay" not in n}),
    ]
    targets = (
        Target("recall of overloaded seconds", 0.9, ours.figures["recall"]),
        Target("false share of the other seconds", 0.03, ours.figures["false share"], at_least=False),
        Target("median delay (s)", 5.0, ours.figures["median delay s"], at_least=False),
    )
    flagged = np.concatenate(shipped).mean()
    notes = (
        f"Permuted truth is at chance where recall and false share are both that of flagged seconds, {flagged:.3f}.",
        "KV usage and its growth cannot tell a full server from a busy one; what requests feel can. The reference "
        "waits its 5 s by definition. A stretch that is never flagged counts with its whole length.",
    )
    return Report(lines, targets, notes)
