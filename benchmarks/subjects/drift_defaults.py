"""Where the defaults of `intent_drift` come from: real dialogues with labelled topic shifts.

    python benchmarks/subjects/drift_defaults.py --data DIR [--json]

DIR holds the labelled dialogues' embeddings (`dialogues/embeddings_*.npz`). Grouped cross-validation:
whole dialogues are held out; mean and deviation of the prior, k and fixed thresholds come from the
others. Printed: micro F1 and ROC-AUC, out of sample, of every method; then each k with the prior
pooled over the files of one embedding model (the shipped defaults are the best of them, rounded),
the shipped defaults, and the shipped k with the prior's mean and deviation of that file.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabilitykit.detectors.intent_drift import INTENT_DRIFT
from stabilitykit.detectors.trace import Instance, compiled_kernel

FILES = {
    # name: (file, label, user turns only)
    "tiage": ("embeddings_minilm_tiage.npz", "shift", False),
    "dialseg711": ("embeddings_minilm_dialseg711.npz", "shift", False),
    "sgd": ("embeddings_minilm_sgd.npz", "shift_user", True),
    "crosswoz": ("embeddings_e5small_crosswoz.npz", "shift_user", True),
}
POOLED = ("tiage", "dialseg711", "sgd")
"""The files of one embedding model, all-MiniLM-L6-v2."""
FOLDS = 5
K_GRID = (0.25, 0.5, 0.75, 1.0, 1.25)
Dialogue = tuple[NDArray[np.float32], NDArray[np.int64]]
KERNEL = compiled_kernel(INTENT_DRIFT)


def load(folder: Path, name: str) -> list[Dialogue]:
    """Read one file: embeddings and labels of each dialogue."""
    file, label, only_user = FILES[name]
    z = np.load(folder / file)
    ends = np.cumsum(z["n_turns"])
    out = []
    for end, n in zip(ends, z["n_turns"], strict=True):
        part = slice(end - n, end)
        e, y, user = z["E"][part].astype(np.float32), z[label][part].astype(np.int64), z["is_user"][part] > 0
        if only_user:
            at = np.flatnonzero(user)
            starts = np.r_[0, at[:-1] + 1]
            y = np.array([int(j > 0 and y[a : b + 1].any()) for j, (a, b) in enumerate(zip(starts, at, strict=True))])
            e = e[at]
        out.append((e, y))
    return out


def run(dialogues: list[Dialogue], **settings: Any) -> list[NDArray[np.float64]]:
    """Run the detector afresh over each dialogue: rows of (is_drift, distance, threshold), without turn 1."""
    detector = Instance(INTENT_DRIFT, settings, KERNEL)
    out = []
    for e, _ in dialogues:
        detector.reset()
        rows = [list(detector.update({"input": vector}).values()) for vector in e]
        out.append(np.array(rows[1:]).reshape(-1, 3))
    return out


def labels(dialogues: list[Dialogue]) -> NDArray[np.int64]:
    return np.concatenate([y[1:] for _, y in dialogues])


def f1(y: NDArray[np.int64], fired: NDArray[np.bool_]) -> float:
    return float(2 * (y & fired).sum() / max(1, y.sum() + fired.sum()))


def auc(y: NDArray[np.int64], score: NDArray[np.float64]) -> float:
    """Area under the ROC curve: the normalised rank sum, ties at their mean rank."""
    _, inverse, counts = np.unique(score, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    ones = int(y.sum())
    return float((ranks[y == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(y) - ones)))


def best_threshold(y: NDArray[np.int64], score: NDArray[np.float64]) -> float:
    """Find the threshold with the greatest F1."""
    order = np.argsort(-score)
    hits = np.cumsum(y[order])
    return float(score[order][np.argmax(2 * hits / (np.arange(1, len(y) + 1) + y.sum()))])


def within(rows: list[NDArray[np.float64]], dialogues: list[Dialogue]) -> tuple[float, float]:
    """Give mean and deviation of the distances inside topics."""
    d = np.concatenate(rows)[:, 1]
    d = d[(labels(dialogues) == 0) & np.isfinite(d)]
    return float(d.mean()), float(d.std())


def outcome(dialogues: list[Dialogue], rows: list[NDArray[np.float64]]) -> tuple[float, float]:
    """Give micro F1 of is_drift and AUC of the margin over the threshold."""
    flat = np.concatenate(rows)
    margin = np.where(np.isnan(flat[:, 2]), -9.0, flat[:, 1] - flat[:, 2])
    return f1(labels(dialogues), flat[:, 0] == 1), auc(labels(dialogues), margin)


def cross_validated(dialogues: list[Dialogue], score: str) -> dict[str, tuple[float, float]]:
    """Hold out whole dialogues: the prior method with fitted prior and k, and the fixed threshold."""
    fold = np.random.default_rng(0).permutation(len(dialogues)) % FOLDS
    prior: list[NDArray[np.float64]] = [np.empty((0, 3))] * len(dialogues)
    fixed = list(prior)
    for held in range(FOLDS):
        train = [d for d, f in zip(dialogues, fold, strict=True) if f != held]
        test = [i for i, f in enumerate(fold) if f == held]
        rows = run(train, score=score)
        mu0, s0 = within(rows, train)
        y = labels(train)
        fits = {k: outcome(train, run(train, score=score, mu0=mu0, s0=s0, k=k))[0] for k in K_GRID}
        k = max(fits, key=lambda k: fits[k])
        threshold = best_threshold(y, np.concatenate(rows)[:, 1])
        for i, out in zip(test, run([dialogues[i] for i in test], score=score, mu0=mu0, s0=s0, k=k), strict=True):
            prior[i] = out
            fixed[i] = np.column_stack([out[:, 1] >= threshold, out[:, 1], np.full(len(out), threshold)])
    return {f"prior, {score}": outcome(dialogues, prior), f"fixed, {score}": outcome(dialogues, fixed)}


def measure(dialogues: list[Dialogue]) -> dict[str, tuple[float, float]]:
    table = {
        "source_as_written k=2": outcome(dialogues, run(dialogues, method="source_as_written", k=2.0)),
        "source_corrected k=2": outcome(dialogues, run(dialogues, method="source_corrected", k=2.0)),
    }
    for score in ("previous", "max2"):
        table |= cross_validated(dialogues, score)
        mu0, s0 = within(run(dialogues, score=score), dialogues)
        table[f"own prior ({mu0:.3f}, {s0:.3f}), shipped k, {score}"] = outcome(
            dialogues, run(dialogues, score=score, mu0=mu0, s0=s0)
        )
    table["shipped defaults"] = outcome(dialogues, run(dialogues))
    return table


def pooled_prior(data: dict[str, list[Dialogue]]) -> dict[str, dict[str, tuple[float, float]]]:
    """Try every k with one prior for all files of the embedding model."""
    mu0, s0 = np.mean([within(run(data[name]), data[name]) for name in POOLED], axis=0)
    return {
        name: {
            f"pooled prior ({mu0:.3f}, {s0:.3f}), k={k}": outcome(data[name], run(data[name], mu0=mu0, s0=s0, k=k))
            for k in K_GRID
        }
        for name in POOLED
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    data = {name: load(args.data / "dialogues", name) for name in FILES}
    pooled = pooled_prior(data)
    result = {name: measure(dialogues) | pooled.get(name, {}) for name, dialogues in data.items()}
    if args.json:
        print(json.dumps({n: {m: {"f1": a, "auc": b} for m, (a, b) in t.items()} for n, t in result.items()}, indent=1))
        return
    for name, table in result.items():
        print(name)
        for method, (f, a) in table.items():
            print(f"  {method:45} F1 {f:.3f}  AUC {a:.3f}")


if __name__ == "__main__":
    main()
