"""The quantile map of `kv_aging: {method: aging_calibrated}`, and how well it tells dead blocks.

    python benchmarks/subjects/aging_map.py --data DIR [--json]

DIR holds traces/mooncake_*.jsonl. At random requests random known blocks are asked for their age;
the answer is judged by whether the block comes back within the next 500 requests. The map is made of
the first half of both traces, the areas under the curve (0.5: a coin) are those of the second half.
"""

from __future__ import annotations

import argparse
import json
from bisect import bisect_right
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

KNOTS = 17
HORIZON = 500
WINDOW = 32
PER_REQUEST = 20
TRACES = ("conversation", "synthetic")

Columns = dict[str, NDArray[np.float64]]


def accesses(path: Path) -> tuple[int, dict[int, list[int]]]:
    """Give the number of requests, and by block the requests that used it."""
    used: dict[int, list[int]] = defaultdict(list)
    request = 0
    for request, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        for block in set(json.loads(line)["hash_ids"]):
            used[block].append(request)
    return request + 1, used


def samples(requests: int, used: dict[int, list[int]]) -> Columns:
    """Ask random known blocks at every request that has a future of HORIZON requests."""
    rng = np.random.default_rng(20)
    arrivals = sorted((times[0], block) for block, times in used.items())
    known: list[int] = []
    rows = []
    for now in range(requests - HORIZON):
        while len(known) < len(arrivals) and arrivals[len(known)][0] <= now:
            known.append(arrivals[len(known)][1])
        if now >= requests // 10:
            rows += [(now, *ask(used[known[k]], now)) for k in rng.integers(0, len(known), PER_REQUEST)]
    names = ("now", "idle", "count", "recent", "before", "is_dead")
    return dict(zip(names, np.array(rows, np.float64).T, strict=True))


def ask(times: list[int], now: int) -> tuple[int, int, int, int, bool]:
    """Give idle time, accesses, accesses in the window and in the one before, and the truth."""
    i = bisect_right(times, now)
    j, k = bisect_right(times, now - WINDOW), bisect_right(times, now - 2 * WINDOW)
    is_dead = i == len(times) or times[i] > now + HORIZON
    return now - times[i - 1], i, i - j, j - k, is_dead


def ages(s: Columns, knots: list[float]) -> Columns:
    """Give every method's age of every sample."""
    recency = np.minimum(1.0, s["idle"] / WINDOW)
    quiet = (s["before"] == 0) & (s["recent"] == 0)
    decay = np.clip(1.0 - s["recent"] / np.maximum(s["before"], 1.0), 0.0, 1.0)
    return {
        "aging_calibrated": np.interp(s["idle"] / s["count"], knots, np.linspace(0.0, 1.0, len(knots))),
        "source code: min(1, idle / 32)": recency,
        "source formula: reuse_decay": np.where(quiet, recency, decay),
    }


def area(score: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Give the area under the ROC curve, ties half."""
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]
    ones = truth.sum()
    return float((rank[truth == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(truth) - ones)))


def measure(data: Path) -> dict[str, Any]:
    """Fit the map on the first halves and judge on the second halves."""
    traces = {name: samples(*accesses(data / "traces" / f"mooncake_{name}.jsonl")) for name in TRACES}
    halves = {}
    pool = []
    for name, s in traces.items():
        later = s["now"] >= np.median(s["now"])
        halves[name] = {key: column[later] for key, column in s.items()}
        pool.append((s["idle"] / s["count"])[~later])
    size = min(len(part) for part in pool)
    even = np.concatenate([part[np.linspace(0, len(part) - 1, size).astype(int)] for part in pool])
    knots = [round(float(q), 1) for q in np.quantile(even, np.linspace(0.0, 1.0, KNOTS))]
    found = {
        name: {method: round(area(age, s["is_dead"]), 3) for method, age in ages(s, knots).items()}
        for name, s in halves.items()
    }
    return {"knots": knots, "area_under_curve": found, "horizon_requests": HORIZON, "samples": 2 * size}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    result = measure(given.data)
    if given.json:
        print(json.dumps(result))
        return
    print("AGING_MAP =", tuple(result["knots"]))
    for name, methods in result["area_under_curve"].items():
        for method, value in methods.items():
            print(f"{name:14s}{method:34s}{value:.3f}")


if __name__ == "__main__":
    main()
