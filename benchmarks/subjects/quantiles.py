"""p99.9 of a stream in 3 KB: the relative error on six distributions, and whether merging is exact.

DIR holds `traces/llmperf_individual.jsonl`; the sixth distribution is drawn from its inter-token latencies, as in
formulas B1.1. 200,000 values each; the truth is the nearest rank of all of them. `worst` is over the distributions and
draws. Nothing is fitted, so there are no folds; intervals: draws with replacement. `check` asks the detector fed with
one distribution for the quantile of the next.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.subjects.report import Line, Report, Target
from benchmarks.subjects.series import Runner
from stabilitykit.detectors.quantile import QUANTILE

TITLE = "Quantiles: p99.9 of a stream in 3 KB"
COUNT, DRAWS, BOOTSTRAPS, WANTED, BYTES = 200_000, 5, 500, 0.011, 3 * 1024
SETTINGS = {"lowest": 1.0}
"""Nanoseconds to 16 ms, as the values are."""

Floats = NDArray[np.float64]
Estimate = Callable[[Floats], float]


def distributions(itl_ns: Floats, rng: np.random.Generator) -> dict[str, Floats]:
    normal = rng.standard_normal
    shifted = np.exp(0.3 * normal(COUNT)) * 2e3
    shifted[COUNT // 2 :] *= 2
    return {
        "lognormal": np.exp(normal(COUNT)) * 2e3,
        "pareto 1.5": 2e3 * (1 + rng.pareto(1.5, COUNT)),
        "pareto 3": 2e3 * (1 + rng.pareto(3, COUNT)),
        "bimodal": np.where(rng.random(COUNT) < 0.002, 50, 1) * np.exp(0.2 * normal(COUNT)) * 2e3,
        "doubles at half": shifted,
        "llmperf ITL": rng.choice(itl_ns, COUNT) * np.exp(0.02 * normal(COUNT)),
    }


def truth(values: Floats) -> float:
    return float(np.sort(values)[math.ceil(0.999 * len(values)) - 1])


RUNNER = Runner(QUANTILE, SETTINGS)


def ours(values: Floats) -> float:
    RUNNER.feed(values)
    return RUNNER.one.update({})["p999"]


def merged(values: Floats) -> bool:
    """Tell whether four detectors added up hold, bit for bit, what one that saw everything holds."""
    RUNNER.feed(values)
    whole, total = RUNNER.one.memory[1].copy(), np.zeros_like(RUNNER.one.memory[1])
    for part in np.array_split(values, 4):
        RUNNER.feed(part)
        total += RUNNER.one.memory[1]
    return bool((whole == total).all())


def robbins_monro(values: Floats) -> float:
    """Give the stochastic approximation of the logarithm, 16 bytes."""
    told = math.log(float(np.quantile(values[:50], 0.999)))
    for n, value in enumerate(np.log(values[50:]).tolist(), start=1):
        gain = max(0.0005, 1.0 / n)
        told += gain * 0.999 if value > told else -gain * 0.001
    return math.exp(told)


def sketch(values: Floats) -> float:
    from ddsketch import DDSketch

    found = DDSketch(0.01)
    for value in values.tolist():
        found.add(value)
    return float(found.get_quantile_value(0.999) or float("nan"))


METHODS: dict[str, tuple[str, Estimate]] = {
    "greatest value": ("trivial", lambda v: float(v.max())),
    "mean + 3.09 deviations": ("trivial", lambda v: float(v.mean() + 3.0902 * v.std())),
    "exact, of the last 1,000": ("source", lambda v: truth(v[-1000:])),
    "Robbins-Monro, 16 bytes": ("reference", robbins_monro),
    "quantile": ("ours", ours),
}


def line(method: str, kind: str, errors: Floats, names: list[str]) -> Line:
    """Report float64[draws, distributions]."""
    drawn = errors[np.random.default_rng(4).integers(0, DRAWS, (BOOTSTRAPS, DRAWS))].max(axis=1)
    worst = float(errors.max())
    low, high = np.quantile(drawn.max(axis=1), [0.025, 0.975]).tolist()
    figures = {"worst": worst, **dict(zip(names, errors.max(axis=0).tolist(), strict=True))}
    return Line("200,000 values", method, kind, figures, {"worst": (low, high)})


def run(data: Path) -> Report:
    """Estimate p99.9 of every distribution, some draws each, with every method."""
    rows = (data / "traces" / "llmperf_individual.jsonl").read_text().splitlines()
    seconds = np.array([json.loads(row).get("inter_token_latency_s") or 0.0 for row in rows])
    rng = np.random.default_rng(7)
    drawn = [distributions(seconds[seconds > 0] * 1e6, rng) for _ in range(DRAWS)]
    names = list(drawn[0])
    exact = np.array([[truth(values) for values in one.values()] for one in drawn])
    methods, notes = dict(METHODS), []
    try:
        import ddsketch  # noqa: F401

        methods["ddsketch 0.01"] = ("reference", sketch)
    except ImportError:
        notes.append("ddsketch is not installed (the bench extra has it), so its line is missing.")
    lines, estimates = [], {}
    for method, (kind, estimate) in methods.items():
        told = estimates[method] = np.array([[estimate(values) for values in one.values()] for one in drawn])
        lines.append(line(method, kind, np.abs(told / exact - 1), names))
    lines.append(line("quantile", "check", np.abs(np.roll(estimates["quantile"], 1, axis=1) / exact - 1), names))
    are_merged = [merged(values) for values in drawn[0].values()]
    size = QUANTILE.layout(SETTINGS).u4 * 4
    targets = [
        Target("worst relative error of p99.9", WANTED, lines[4].figures["worst"], at_least=False),
        Target("distributions whose merged quarters are the whole", len(names), float(sum(are_merged))),
    ]
    notes.append(
        f"A `quantile` holds {size} bytes: {BYTES} of counts, and a sum for each of 24 octaves, their number and those "
        "above the range."
    )
    return Report(lines, targets, notes)
