"""What `throughput_cliff`, `decay_pattern`, `no_progress`, `leak` and `forecast` say of real servers.

    python benchmarks/subjects/trends.py --data DIR [--json]

DIR holds `traces/` and `logs/`. Printed:

endpoints  hosted endpoints, each a conversation: cliffs, turns called ramping by window and their longest row, greatest
           TTFT / median, smallest rate / median
replica    one vLLM server at eight load levels: samples called a leak in 1,000, longest row of them; the forecast above
           80 % of the KV cache (it never came so far)
bursts     vLLM statistics lines, three a run, 10 s apart: where usage passed 96 %, whether the samples before said so
hangs      two client logs that end in a hang: how long the silence was when it was called
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from datetime import datetime
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

from stabilitykit.detectors.decay_pattern import DECAY_PATTERN
from stabilitykit.detectors.forecast import FORECAST
from stabilitykit.detectors.leak import LEAK
from stabilitykit.detectors.no_progress import NO_PROGRESS
from stabilitykit.detectors.throughput_cliff import THROUGHPUT_CLIFF
from stabilitykit.detectors.trace import Instance, compiled_kernel

SCALES = (100, 200, 400, 500, 700, 800, 1000, 1500)
FULL, SOON, LEVEL = 0.96, 10, 0.8
KERNELS = {s.type: compiled_kernel(s) for s in (DECAY_PATTERN, FORECAST, LEAK, NO_PROGRESS, THROUGHPUT_CLIFF)}


def outputs(spec: Any, rows: list[dict[str, Any]], settings: dict[str, Any] | None = None) -> list[dict[str, float]]:
    """Run a compiled detector over rows."""
    instance = Instance(spec, settings, KERNELS[spec.type])
    return [instance.update(row) for row in rows]


def longest(flags: list[bool]) -> int:
    """Give the longest row of true flags."""
    return max((len(list(run)) for is_on, run in groupby(flags) if is_on), default=0)


def endpoints(data: Path) -> dict[str, Any]:
    """Run the detectors of a session over each endpoint's requests."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in (data / "traces" / "llmperf_individual.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if not row["error_code"] and row["number_output_tokens"] > 1:
            found.setdefault(row["endpoint"], []).append(row)
    return {name: endpoint(sorted(rows, key=lambda r: r["request"])) for name, rows in found.items() if len(rows) > 30}


def endpoint(rows: list[dict[str, Any]]) -> dict[str, Any]:
    rates = [(r["number_output_tokens"] - 1) / (r["end_to_end_latency_s"] - r["ttft_s"]) for r in rows]
    first = [r["ttft_s"] for r in rows]
    turns = [{"input": rate} for rate in rates]
    cliffs = outputs(THROUGHPUT_CLIFF, turns)
    told: dict[str, Any] = {
        "turns": len(rows),
        "cliffs": sum(t["is_cliff"] == 1 for t in cliffs),
        "cliffs in a row": longest([t["is_cliff"] == 1 for t in cliffs]),
        "ttft max/median": round(max(first) / median(first), 1),
        "rate min/median": round(min(rates) / median(rates), 3),
    }
    for window in (5, 8, 12, 20):
        states = outputs(DECAY_PATTERN, turns, {"window": window})
        told[f"ramping w={window}"] = sum(t["is_ramping"] == 1 for t in states)
        told[f"row w={window}"] = longest([t["is_ramping"] == 1 for t in states])
    return told


def replica(data: Path) -> dict[str, Any]:
    """Run the detectors of a replica over the engine's samples."""
    return {str(scale): level(data, scale) for scale in SCALES}


def level(data: Path, scale: int) -> dict[str, Any]:
    with (data / "traces" / f"burstgpt_vllm_scale{scale}_engine.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    usage = [float(r["gpu_kvcache_usage"]) / 100 for r in rows]
    leaks = outputs(LEAK, [{"usage": u, "running": float(r["num_running"])} for u, r in zip(usage, rows, strict=True)])
    timed = [{"input": u, "time": float(r["timestamp"])} for u, r in zip(usage, rows, strict=True)]
    soon = [
        t["is_soon"] == 1 and u > LEVEL
        for t, u in zip(outputs(FORECAST, timed, {"full": FULL, "soon": SOON}), usage, strict=True)
    ]
    high = [t["is_leak"] == 1 and u > LEVEL for t, u in zip(leaks, usage, strict=True)]
    full = next((i for i, u in enumerate(usage) if u >= FULL), None)
    early = [i for i, is_on in enumerate(soon) if is_on and (full is None or i < full)]
    return {
        "samples": len(rows),
        "greatest usage": round(max(usage), 3),
        "leaks / 1000": round(1000 * sum(t["is_leak"] == 1 for t in leaks) / len(rows), 1),
        "leaks in a row": longest([t["is_leak"] == 1 for t in leaks]),
        f"leaks above {LEVEL:.0%}": sum(high),
        "in a row above": longest(high),
        "samples to full": None if full is None else full,
        "first call before full": full - early[0] if full is not None and early else None,
        "calls without full": len(early) if full is None else 0,
        "calls / 1000": round(1000 * sum(soon) / len(rows), 1),
    }


STATS = re.compile(r"INFO (\d\d-\d\d [\d:]+) .*KV cache usage: ([\d.]+)%")


def bursts(data: Path) -> dict[str, Any]:
    """Extrapolate from two samples what the third of the run shows."""
    runs: list[list[tuple[float, float]]] = []
    for line in (data / "logs" / "vllm_stats_series.log").read_text(encoding="utf-8").splitlines():
        if told := STATS.search(line):
            at = datetime.strptime(f"2025-{told[1]}", "%Y-%m-%d %H:%M:%S").timestamp()
            if not runs or not 0 < at - runs[-1][-1][0] < 15:
                runs.append([])
            runs[-1].append((at, float(told[2]) / 100))
    result: dict[str, Any] = {
        "runs": 0,
        "growing": 0,
        "error of the third, points": list[float](),
        "first at 96 % on the third": 0,
    }
    called = 0
    for run in (r for r in runs if len(r) == 3 and r[0][1] < r[1][1] < FULL):
        rows = [{"input": usage, "time": at} for at, usage in run[:2]]
        out = outputs(FORECAST, rows, {"full": FULL, "soon": 1.5, "window": 4})[-1]
        result["growing"] += 1
        result["error of the third, points"].append(round(100 * (run[1][1] + out["slope_per_turn"] - run[2][1]), 1))
        result["first at 96 % on the third"] += run[2][1] >= FULL
        called += run[2][1] >= FULL and out["is_soon"] == 1
    return {"all": {**result, "runs": len(runs), "of these called before": called}}


CLOCK = re.compile(r"^(\S+ \S+) ")


def hangs(data: Path) -> dict[str, Any]:
    """Replay two client logs: first tokens as they came, then a second of silence after another."""
    told = {}
    for line in (data / "logs" / "client_multi_turn_runs.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        first = [1e3 * float(m[1]) for text in row["lines"] if (m := re.search(r"TTFB: ([\d.]+)s", text))]
        attempts = [clock(text) for text in row["lines"] if "completion attempt" in text]
        end = next(clock(text) for text in row["lines"] if "Idle timeout" in text)
        silence = [{"age": 1e3 * s, "tokens": 0.0} for s in range(1, int(end - attempts[-1]) + 1)]
        out = outputs(NO_PROGRESS, [*({"ttft": ms} for ms in first), *silence])[len(first) :]
        told[row["run"]] = {
            "first tokens, ms": first,
            "silence until the client gave up, s": round(end - attempts[-1], 1),
            "called after, s": next((s for s, t in enumerate(out, 1) if t["is_hung"] == 1), None),
        }
    return told


def clock(line: str) -> float:
    """Give the time of a log line."""
    stamp = CLOCK.match(line)
    assert stamp is not None
    return datetime.strptime(stamp[1], "%Y-%m-%d %H:%M:%S.%f").timestamp()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    table = {f.__name__: f(options.data) for f in (endpoints, replica, bursts, hangs)}
    if options.json:
        print(json.dumps(table))
        return
    for part, rows in table.items():
        print(part)
        for name, row in rows.items():
            print(f"  {name}: " + ", ".join(f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
