"""Split-conformal thresholds: the false rate on other recordings, and whether the reported bound holds.

DIR holds `dialogues/embeddings_*.npz` and `traces/`. A session has one score. `distance`: the greatest cosine distance
between neighbouring turns of a dialogue. `first token`: the time to first token of a request to one vLLM server at
eight load levels. `gap`: the slowest of ten requests in a row to a hosted endpoint, against the endpoint's median.

Sessions are dealt at random, many times: some calibrate, the threshold is scored on all the others. `mean` is the false
rate over the deals, `p95` its 95th percentile, `covered` the share of deals whose false rate is at most the upper bound
that was reported beforehand. Where (n + 1) rate is a whole number the expected rate is the nominal one exactly, and a
drawn mean lies on either side of it: such a setting has no target. Intervals: deals drawn with replacement. `check`
scores sessions that go half as far again: there the promise must fail. Deals by group (endpoint, load level, set of
dialogues) calibrate on half the groups and score the others: these are not alike, nothing is promised, and the lines
show by how much it fails.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.subjects.breaker import load
from benchmarks.subjects.report import Line, Report, Target
from stabilitykit.cli.calibrate.conformal import Threshold, calibrate

TITLE = "Thresholds from healthy recordings: false rate, and its bound"
SCALES = (100, 200, 400, 500, 700, 800, 1000, 1500)
DEALS, BOOTSTRAPS, COVERED, FURTHER = 2000, 1000, 0.94, 1.5
SETTINGS = ((50, 0.05), (99, 0.01), (150, 0.01), (250, 0.01))
"""Sessions that calibrate, and the rate asked for; 50 at 5 % is the reference's, 99 the fewest that bear 1 %."""

Floats = NDArray[np.float64]
Chooser = Callable[[Sequence[float], float], Threshold]


def distances(folder: Path) -> tuple[Floats, NDArray[np.int64]]:
    """Give the score and the file of each dialogue."""
    scores, groups = [], []
    for k, path in enumerate(sorted(folder.glob("embeddings_*.npz"))):
        with np.load(path) as held:
            rows, counts = held["E"].astype(np.float64), held["n_turns"]
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        for end, size in zip(np.cumsum(counts), counts, strict=True):
            turns = rows[end - size : end]
            if size > 1:
                scores.append(float((1 - (turns[1:] * turns[:-1]).sum(axis=1)).max()))
                groups.append(k)
    return np.array(scores), np.array(groups)


def first_tokens(folder: Path) -> tuple[Floats, NDArray[np.int64]]:
    """Give the time to first token (s) and the load level of each request."""
    scores, groups = [], []
    for k, scale in enumerate(SCALES):
        with (folder / f"burstgpt_vllm_scale{scale}_requests.csv").open(encoding="utf-8") as file:
            rows = [float(row["first_chunk_time"]) for row in csv.DictReader(file)]
        scores += rows
        groups += [k] * len(rows)
    return np.array(scores), np.array(groups)


def gap_rows(folder: Path) -> tuple[Floats, NDArray[np.int64]]:
    """Give the slowest gap of every ten requests against the endpoint's median, and the endpoint."""
    scores, groups = [], []
    for k, series in enumerate(load(folder / "llmperf_individual.jsonl")):
        blocks = series[: len(series) // 10 * 10].reshape(-1, 10) / np.median(series)
        scores += blocks.max(axis=1).tolist()
        groups += [k] * len(blocks)
    return np.array(scores), np.array(groups)


def greatest(scores: Sequence[float], rate: float) -> Threshold:
    return Threshold(max(scores), len(scores), 1)


def three_deviations(scores: Sequence[float], rate: float) -> Threshold:
    return Threshold(float(np.mean(scores) + 3 * np.std(scores)), len(scores), 2)


def quantile(scores: Sequence[float], rate: float) -> Threshold:
    """Give the plain sample quantile, as if the recording were the world."""
    return Threshold(float(np.quantile(scores, 1 - rate)), len(scores), 1, rate, rate, rate)


def split_conformal(scores: Sequence[float], rate: float) -> Threshold:
    """Do what loopbrake 0.6 does with a host's good runs: the same rank, and no more said than the rate asked for."""
    rank = math.ceil((len(scores) + 1) * (1 - rate) - 1e-9)
    return Threshold(sorted(scores)[min(rank, len(scores)) - 1], len(scores), 19, rate, rate, rate)


METHODS: dict[str, tuple[str, Chooser]] = {
    "greatest seen": ("trivial", greatest),
    "mean + 3 deviations": ("source", three_deviations),
    "sample quantile, bound: the rate": ("trivial", quantile),
    "split-conformal, bound: the rate": ("reference", split_conformal),
    "conformal": ("ours", calibrate),
}


def deal(scores: Floats, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    order = rng.permutation(len(scores))
    return scores[order[:size]], scores[order[size:]]


def deal_groups(
    scores: Floats, groups: NDArray[np.int64], size: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Calibrate on as many sessions of half the groups, score on the other half."""
    names = rng.permutation(np.unique(groups))
    mine = np.isin(groups, names[: len(names) // 2])
    return rng.permutation(scores[mine])[:size], scores[~mine]


def realised(deals: Sequence[tuple[Floats, Floats]], rate: float, choose: Chooser) -> Floats:
    """Give float64[deals, 2]: the false rate, and whether the bound that was reported holds."""
    rows = []
    for known, others in deals:
        told = choose(known.tolist(), rate)
        false = float((others > told.value).mean()) if told.value is not None else 0.0
        rows.append((false, false <= told.high))
    return np.array(rows, np.float64)


def line(of: str, method: str, kind: str, rows: Floats) -> Line:
    def figures(r: Floats) -> dict[str, float]:
        return {
            "mean": float(r[:, 0].mean()),
            "p95": float(np.quantile(r[:, 0], 0.95)),
            "covered": float(r[:, 1].mean()),
        }

    drawn = np.random.default_rng(6).integers(0, len(rows), (BOOTSTRAPS, len(rows)))
    table = np.array([list(figures(rows[k]).values()) for k in drawn])
    low, high = np.quantile(table, [0.025, 0.975], axis=0).tolist()
    told = figures(rows)
    return Line(of, method, kind, told, dict(zip(told, zip(low, high, strict=True), strict=True)))


def run(data: Path) -> Report:
    """Deal the sessions of every kind, with every setting and method."""
    kinds = {
        "distance": distances(data / "dialogues"),
        "first token": first_tokens(data / "traces"),
        "gap": gap_rows(data / "traces"),
    }
    lines, targets = [], []
    for place, (name, (scores, groups)) in enumerate(kinds.items()):
        for size, rate in SETTINGS:
            if size > len(scores) / 2:
                continue
            of = f"{name}, {size} sessions, {rate:.0%}"
            rng = np.random.default_rng(10 * size + place)
            deals = [deal(scores, size, rng) for _ in range(DEALS)]
            lines += [line(of, m, kind, realised(deals, rate, choose)) for m, (kind, choose) in METHODS.items()]
            mine = lines[-1].figures
            if (size + 1) * rate % 1 > 1e-9:
                targets.append(Target(f"{of}: mean false rate", rate, mine["mean"], at_least=False))
            targets.append(Target(f"{of}: bound holds", COVERED, mine["covered"]))
            apart = [deal_groups(scores, groups, size, rng) for _ in range(DEALS)]
            lines.append(line(of, "conformal, other groups", "ours", realised(apart, rate, calibrate)))
            further = [(known, FURTHER * others) for known, others in deals]
            lines.append(line(of, "conformal, others go further", "check", realised(further, rate, calibrate)))
    notes = [f"{name}: {len(scores)} sessions in {len(set(g.tolist()))} groups." for name, (scores, g) in kinds.items()]
    notes.append(
        "The promise is about sessions like those that calibrated, dealt at random. Those of other endpoints, load "
        "levels or sets of dialogues are not alike: the lines `other groups` show by how much it fails there. Where "
        "(n + 1) times the rate is a whole number the expected rate is the nominal one, drawn on either side of it: no "
        "target."
    )
    return Report(lines, targets, notes)
