"""Where the defaults of `itl_breaker` come from: real inter-token latencies of hosted endpoints.

    python benchmarks/subjects/itl_breaker_defaults.py --data DIR [--json] [--runs N]

DIR holds `traces/llmperf_individual.jsonl`. Each endpoint with at least 100 requests is resampled in
blocks of ten (which keeps the autocorrelation), then all values from turn 200 on are multiplied.
Printed for three turns over in a row: false trips in 1,000 healthy turns, and median and 95th
percentile of the turns until the trip, and the share not tripped within 60 turns, per step.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabilitykit.detectors.itl_breaker import ITL_BREAKER
from stabilitykit.detectors.trace import Instance, compiled_kernel

METHODS: dict[str, dict[str, Any]] = {
    "p90 (default)": {},
    "p90, max_freeze 20": {"max_freeze": 20},
    "ewma": {"method": "ewma"},
    "static, mean of 20": {"method": "static"},
}
STEPS = (1.5, 2.0, 5.0)
ONSET, IN_A_ROW, PATIENCE = 200, 3, 60
KERNEL = compiled_kernel(ITL_BREAKER)


def load(path: Path) -> list[NDArray[np.float64]]:
    """Read the inter-token latencies (ms) of each endpoint in order of its requests."""
    found: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for line in path.read_text().splitlines():
        row = json.loads(line)
        seconds = row.get("inter_token_latency_s")
        if seconds and seconds > 0 and not row.get("error_code"):
            found[row["endpoint"]].append((row["request"], 1000 * seconds))
    return [np.array([ms for _, ms in sorted(rows)]) for rows in found.values() if len(rows) >= 100]


def resample(series: NDArray[np.float64], rng: np.random.Generator, turns: int) -> NDArray[np.float64]:
    """Draw blocks of ten until there are enough turns."""
    starts = rng.integers(0, max(1, len(series) - 10), turns // 10 + 1)
    return np.concatenate([series[i : i + 10] for i in starts])[:turns]


def trips(values: NDArray[np.float64], settings: dict[str, Any]) -> list[int]:
    """Give the turns (from 0) on which a run of turns over becomes long enough."""
    if settings.get("method") == "static":
        settings = {**settings, "baseline_ms": float(values[:20].mean())}
    detector, run, out = Instance(ITL_BREAKER, settings, KERNEL), 0, []
    for turn, value in enumerate(values):
        is_over = detector.update({"input": value})["is_over"]
        if is_over == is_over:
            run = run + 1 if is_over else 0
        if run == IN_A_ROW and turn >= 20:
            out.append(turn)
    return out


def measure(series: list[NDArray[np.float64]], settings: dict[str, Any], runs: int) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    healthy = [len(trips(resample(s, rng, 420), settings)) for s in series for _ in range(runs)]
    result: dict[str, Any] = {"false trips / 1000 turns": round(float(1000 * np.mean(healthy) / 400), 2)}
    for step in STEPS:
        delays = []
        for s in series:
            for _ in range(runs):
                values = resample(s, rng, ONSET + PATIENCE)
                values[ONSET:] *= step
                delays.append(next((t - ONSET + 1 for t in trips(values, settings) if t >= ONSET), None))
        seen = [d for d in delays if d is not None]
        median, p95 = np.quantile(seen, [0.5, 0.95]).round().tolist()
        result[f"x{step:g}"] = {"median": median, "p95": p95, "missed": round(1 - len(seen) / len(delays), 3)}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=12, help="resampled series per endpoint")
    args = parser.parse_args()
    series = load(args.data / "traces" / "llmperf_individual.jsonl")
    result = {name: measure(series, settings, args.runs) for name, settings in METHODS.items()}
    print(json.dumps(result, indent=1) if args.json else "\n".join(f"{n:20} {r}" for n, r in result.items()))


if __name__ == "__main__":
    main()
