"""Spikes and excursions of load and latency series: `excursion` on the Numenta Anomaly Benchmark's series.

DIR holds `latency_series/` with `labels.json`. The score is the benchmark's own (v1.1): a window's first call earns up
to 1 by how early it comes, a missed window costs 1 (low FN: 2), every call outside costs up to .11 (low FP: .22); 100
is perfect, 0 is silence. Calls in the first 15 % of a series (at most 750 values) do not count.

`windowedGaussian` is the benchmark's detector, value for value: on the benchmark's whole corpus its published scores
give the published 39.6 / 20.9 / 47.4 here (formulas section 3). It, the quantile and ours are given the same refractory
time where said. Its threshold is the best on these very series, in its favour. `excursion, left out` takes its margins
for each series from the others. Intervals: series drawn with replacement.
"""

from __future__ import annotations

import json
import math
from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path

import attrs
import numpy as np
from numpy.typing import NDArray

from benchmarks.subjects.report import Line, Report, Target
from benchmarks.subjects.series import Runner
from stabilitykit.detectors.excursion import EXCURSION

TITLE = "Spikes and excursions: the Numenta Anomaly Benchmark's series"
PROFILES = {"standard": (1.0, 0.11), "low FP": (1.0, 0.22), "low FN": (2.0, 0.11)}
"""Cost of a missed window and of a call outside."""
COOLDOWN, DRAWS = 100, 1000
MARGINS, JUMPS = (0.01, 0.02, 0.05), (0.1, 0.2, 0.4)
STANDARD_GAIN, LOW_FP_GAIN = 3.0, 6.0

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def sigmoid(place: Floats | float) -> Floats:
    """Give the benchmark's weight of a call: 1 well before the end of a window, -1 long after it."""
    place = np.asarray(place, float)
    return np.where(place > 3, -1.0, 2 / (1 + np.exp(5 * np.minimum(place, 50))) - 1)


@attrs.frozen(eq=False)
class Series:
    """One series: its values, what a call at each of them is worth, and which window it lies in (-1: none)."""

    name: str
    values: Floats
    worth: Floats
    window: NDArray[np.int64]
    probation: int

    @property
    def windows(self) -> int:
        return len(set(self.window[self.probation :].tolist()) - {-1})


def read(folder: Path) -> list[Series]:
    labels = json.loads((folder / "labels.json").read_text())
    return [series_of(folder / name, labels[name]["anomaly_windows"]) for name in sorted(labels)]


def series_of(path: Path, windows: Sequence[tuple[str, str]]) -> Series:
    rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
    times = np.array([row[0] for row in rows], "datetime64[us]")
    spans = [[int(np.flatnonzero(times == np.datetime64(end))[0]) for end in span] for span in windows]
    worth, window = np.full(len(rows), -1.0), np.full(len(rows), -1)
    for k, (first, last) in enumerate(spans):
        inside, size = np.arange(first, last + 1), last - first + 1
        worth[inside] = sigmoid(-(last - inside + 1) / size) / float(sigmoid(-1.0))
        window[inside] = k
        after = np.arange(last + 1, spans[k + 1][0] if k + 1 < len(spans) else len(rows))
        worth[after] = sigmoid((after - last) / max(size - 1, 1))
    values = np.array([float(row[1]) for row in rows])
    return Series(path.name, values, worth, window, int(min(0.15 * len(rows), 750)))


def earned(series: Series, calls: Flags) -> dict[str, float]:
    """Give the raw score of a series in each profile."""
    calls = calls.copy()
    calls[: series.probation] = False
    outside = float(series.worth[calls & (series.window < 0)].sum())
    counted = set(series.window[series.probation :].tolist()) - {-1}
    first = [series.worth[calls & (series.window == k)] for k in counted]
    told = {}
    for name, (missed, false) in PROFILES.items():
        told[name] = false * outside + sum(float(w.max()) if len(w) else -missed for w in first)
    return told


def score(series: Sequence[Series], calls: Sequence[Flags]) -> Floats:
    """Give float64[series, 1 + profiles]: windows and raw scores, to be summed before they are normalised."""
    return np.array([[s.windows, *earned(s, c).values()] for s, c in zip(series, calls, strict=True)])


def normalised(parts: Floats) -> Floats:
    """Give the scores of the profiles of summed parts [..., 1 + profiles]: 0 for silence, 100 for perfection."""
    missed = np.array([p[0] for p in PROFILES.values()])
    windows = parts[..., :1]
    return np.asarray(100 * (parts[..., 1:] + missed * windows) / (windows * (1 + missed)))


def line(method: str, kind: str, series: Sequence[Series], calls: Sequence[Flags]) -> Line:
    parts = score(series, calls)
    drawn = np.random.default_rng(5).integers(0, len(parts), (DRAWS, len(parts)))
    sums = parts[drawn].sum(axis=1)
    low, high = np.quantile(normalised(sums[sums[:, 0] > 0]), [0.025, 0.975], axis=0)
    figures = dict(zip(PROFILES, normalised(parts.sum(axis=0)).tolist(), strict=True))
    spans = {name: (float(a), float(b)) for name, a, b in zip(PROFILES, low, high, strict=True)}
    made = sum(int(c[s.probation :].sum()) for s, c in zip(series, calls, strict=True))
    return Line("series", method, kind, {**figures, "calls": float(made)}, spans)


def cooled(flags: Flags) -> Flags:
    """Give one call an excursion, as a rule with `cooldown: 100` does."""
    called, last = np.zeros(len(flags), bool), -COOLDOWN - 1
    for k in np.flatnonzero(flags).tolist():
        if k - last > COOLDOWN:
            called[k], last = True, k
    return called


def windowed_gaussian(values: Floats, size: int = 6400, step: int = 100) -> Floats:
    """Give the benchmark's own scores: how far a value lies in the tails of a Gaussian of the last 6,400."""
    told = np.zeros(len(values))
    first, last = 0, 0  # the window: a stretch of the series
    mean, deviation = 0.0, 1.0
    for k, value in enumerate(values.tolist()):
        if k:
            told[k] = 1 - 0.5 * math.erfc(abs(value - mean) / deviation / math.sqrt(2))
        if k < size:
            last = k + 1
        elif k + 1 - last == step:
            first, last = first + step, last + step
        else:
            continue
        mean, deviation = float(np.mean(values[first:last])), float(np.std(values[first:last])) or 0.000001
    return told


def quantile_calls(series: Series) -> Flags:
    """Give values outside the exact p0.1 to p99.9 of all before them."""
    past = sorted(series.values[: series.probation].tolist())
    outside = np.zeros(len(series.values), bool)
    for k in range(series.probation, len(series.values)):
        value, rank = float(series.values[k]), math.ceil(0.999 * len(past))
        outside[k] = value > past[rank - 1] or value < past[-rank]
        insort(past, value)
    return outside


def static_calls(series: Series) -> Flags:
    """Give every third in a row above 1.2 times the mean of the probation: the source's breaker."""
    over = series.values > 1.2 * series.values[: series.probation].mean()
    run = over[2:] & over[1:-1] & over[:-2]
    run = np.concatenate([[False, False], run])
    return np.asarray(run & ~np.concatenate([[False], run[:-1]]))


def excursions(series: Sequence[Series], settings: Mapping[str, float]) -> list[Flags]:
    runner = Runner(EXCURSION, settings)
    return [cooled(after(s, runner.run(s.values, "is_out")[0] == 1)) for s in series]


def after(series: Series, flags: Flags) -> Flags:
    """Give nothing in the probation: what is called there starts no cooldown."""
    flags[: series.probation] = False
    return flags


def left_out(series: Sequence[Series], tried: Sequence[list[Flags]]) -> list[Flags]:
    """Give each series the calls of the settings that are best, standard and low FP together, on the others."""
    parts = np.array([score(series, calls) for calls in tried])
    chosen = []
    for k in range(len(series)):
        rest = normalised(np.delete(parts, k, axis=1).sum(axis=1))
        chosen.append(tried[int(np.argmax(rest[:, 0] + rest[:, 1]))][k])
    return chosen


def best_threshold(series: Sequence[Series], scores: Sequence[Floats]) -> list[list[Flags]]:
    """Give the calls at the threshold that is best for each profile, on these very series."""
    thresholds = np.unique(
        np.concatenate(
            [1 - np.geomspace(1e-16, 0.3, 120), np.quantile(np.concatenate(scores), np.linspace(0.7, 1, 60))]
        )
    )
    table = np.array([normalised(score(series, [s >= t for s in scores]).sum(axis=0)) for t in thresholds])
    return [[s >= thresholds[k] for s in scores] for k in table.argmax(axis=0).tolist()]


def permuted(series: Sequence[Series], calls: Sequence[Flags]) -> list[Flags]:
    """Give the same calls at the same distances, turned to a random place in each series."""
    rng = np.random.default_rng(9)
    turned = []
    for s, c in zip(series, calls, strict=True):
        kept = c[s.probation :]
        turned.append(np.concatenate([np.zeros(s.probation, bool), np.roll(kept, int(rng.integers(len(kept))))]))
    return turned


def run(data: Path) -> Report:
    """Score every detector on every series."""
    series = read(data / "latency_series")

    def every(calls: Callable[[Series], Flags]) -> list[Flags]:
        return [calls(s) for s in series]

    gaussian = best_threshold(series, [windowed_gaussian(s.values) for s in series])
    ours = excursions(series, {})
    tried = [excursions(series, {"margin": m, "jump": j}) for m, j in product(MARGINS, JUMPS)]
    lines = [
        line("silence", "trivial", series, every(lambda s: np.zeros(len(s.values), bool))),
        line("every 100th value", "trivial", series, every(lambda s: np.arange(len(s.values)) % COOLDOWN == 0)),
        line("1.2 times the mean, three in a row", "source", series, every(static_calls)),
        *(
            line(f"windowedGaussian, best {name}", "reference", series, calls)
            for name, calls in zip(PROFILES, gaussian, strict=True)
        ),
        line("two-sided p99.9", "reference", series, every(quantile_calls)),
        line("two-sided p99.9, cooldown", "reference", series, every(lambda s: cooled(quantile_calls(s)))),
        line("excursion", "ours", series, ours),
        line("excursion, left out", "ours", series, left_out(series, tried)),
        line("excursion, turned in time", "check", series, permuted(series, ours)),
    ]
    found = {one.method: one.figures for one in lines}
    reference = {p: max(one.figures[p] for one in lines if one.kind == "reference") for p in PROFILES}
    reached = found["excursion, left out"]
    targets = [
        Target("standard, over the better reference", STANDARD_GAIN, reached["standard"] - reference["standard"]),
        Target("low FP, over the better reference", LOW_FP_GAIN, reached["low FP"] - reference["low FP"]),
    ]
    notes = [
        f"{len(series)} series, {sum(s.windows for s in series)} windows. `excursion` keeps "
        f"{EXCURSION.layout({}).f8 * 8} bytes a series, whatever its length.",
        "The gain is that over the better of windowedGaussian and the two-sided p99.9, each profile by itself.",
    ]
    return Report(lines, targets, notes)
