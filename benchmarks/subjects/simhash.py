"""Signatures of snapshots: is the cosine below .72? From a few bits against the exact cosine (formulas B5.1).

DIR holds `dialogues/embeddings_*.npz`. The vectors are real sentence embeddings; so that every cosine between .3 and 1
is as likely as another, which the source's figures assume, a pair is a vector and its mixture with the part of another
one that stands at right angles to it. Both vectors of a pair come from one dialogue, and the bootstrap draws dialogues.
Nothing is fitted, so there are no folds. `grown` has a few components far greater than the rest, as hidden states have.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.subjects.report import Line, Report, Target
from stabilitykit.detectors.snapshot_drift import SNAPSHOT_DRIFT
from stabilitykit.detectors.trace import Instance, compiled_kernel

TITLE = "Similarity of snapshots from signatures (decision at cosine .72)"
LIMIT, BITS, WANTED = 0.72, (64, 128, 256, 512), 0.93
PAIRS, DRAWS, GROWN = 20, 1000, 4

Vectors = NDArray[np.float64]


def pairs_of(folder: Path, rng: np.random.Generator) -> tuple[Vectors, Vectors, NDArray[np.int64]]:
    """Give vectors, their mixtures and the dialogue of each pair."""
    first, second, dialogue = [], [], []
    for number, path in enumerate(sorted(folder.glob("embeddings_*.npz"))):
        with np.load(path) as held:
            vectors, sizes = held["E"].astype(np.float64), held["n_turns"]
        for k, end in enumerate(np.cumsum(sizes)):
            rows = vectors[end - sizes[k] : end]
            for _ in range(PAIRS if len(rows) > 1 else 0):
                u, w = rows[rng.choice(len(rows), 2, replace=False)]
                u = u / np.linalg.norm(u)
                w = w - u * (u @ w)
                if np.linalg.norm(w) < 1e-6:
                    continue
                cosine = rng.uniform(0.3, 1.0)
                first.append(u)
                second.append(cosine * u + math.sqrt(1 - cosine**2) * w / np.linalg.norm(w))
                dialogue.append(10_000 * number + k)
    return np.array(first), np.array(second), np.array(dialogue)


def cosines(u: Vectors, v: Vectors) -> Vectors:
    return (u * v).sum(axis=1) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)


def ours(u: Vectors, v: Vectors, bits: int) -> Vectors:
    """Give what the detector says of each pair."""
    detector = Instance(SNAPSHOT_DRIFT, {"layers": 1, "bits": bits}, compiled_kernel(SNAPSHOT_DRIFT))
    said = []
    for a, b in zip(u, v, strict=True):
        detector.reset()
        detector.update({"input": a})
        said.append(detector.update({"input": b})["similarity"])
    return np.array(said)


def gaussian(u: Vectors, v: Vectors, bits: int, rng: np.random.Generator) -> Vectors:
    """Give the share of differing bits with stored normal hyperplanes."""
    planes = rng.standard_normal((u.shape[1], bits))
    return np.mean((u @ planes > 0) != (v @ planes > 0), axis=1)


def line(
    of: str, method: str, kind: str, below: NDArray[np.bool_], true: NDArray[np.bool_], dialogue: NDArray[np.int64]
) -> Line:
    """Score decisions: the share that the exact cosine makes, too, and of both kinds of pairs apart."""
    names, place = np.unique(dialogue, return_inverse=True)
    drawn = np.random.default_rng(11).integers(0, len(names), (DRAWS, len(names)))
    figures, intervals = dict[str, float](), dict[str, tuple[float, float]]()
    among = {"agreement": np.ones(len(true), bool), "changes seen": true, "rest left alone": ~true}
    for name, which in among.items():
        hits, sizes = (np.bincount(place, which & kept) for kept in (below == true, which))
        low, high = np.quantile(hits[drawn].sum(axis=1) / sizes[drawn].sum(axis=1), [0.025, 0.975])
        figures[name], intervals[name] = float(hits.sum() / sizes.sum()), (float(low), float(high))
    return Line(of, method, kind, figures, intervals)


def compare(of: str, u: Vectors, v: Vectors, dialogue: NDArray[np.int64], rng: np.random.Generator) -> list[Line]:
    """Score every method on one set of pairs."""
    true = cosines(u, v) < LIMIT

    def score(method: str, kind: str, below: NDArray[np.bool_]) -> Line:
        return line(of, method, kind, below, true, dialogue)

    turned = math.acos(LIMIT) / math.pi
    lines = [
        score("always changed", "trivial", np.ones(len(u), bool)),
        score("never changed", "trivial", np.zeros(len(u), bool)),
        score("more than 3 of 64 bits", "source", gaussian(u, v, 64, rng) * 64 > 3.5),
        *(
            score(f"{b} stored normal hyperplanes", "reference", gaussian(u, v, b, rng) > math.floor(b * turned) / b)
            for b in BITS
        ),
        *(score(f"snapshot_drift, {b} bits", "ours", ours(u, v, b) < LIMIT) for b in BITS),
    ]
    shuffled = rng.permutation(len(u))
    lines.append(line(of, "snapshot_drift, 256 bits", "check", ours(u, v, 256) < LIMIT, true[shuffled], dialogue))
    return lines


def run(data: Path) -> Report:
    """Compare decisions on real directions, as they are and with great components."""
    rng = np.random.default_rng(3)
    u, v, dialogue = pairs_of(data / "dialogues", rng)
    grow = np.ones(u.shape[1])
    grow[rng.choice(len(grow), GROWN, replace=False)] = 20.0
    lines = compare("embeddings", u, v, dialogue, rng)
    lines += compare("grown", u * grow, v * grow, dialogue, rng)
    found = {(one.of, one.method): one.figures["agreement"] for one in lines if one.kind == "ours"}
    target = Target(
        "decision at cosine .72, 256 bits, as the exact one", WANTED, found["embeddings", "snapshot_drift, 256 bits"]
    )
    notes = [
        f"{len(u)} pairs from {len(set(dialogue.tolist()))} dialogues; cosines of `embeddings` are even between .3 and "
        "1, those of `grown` are what becomes of them.",
    ]
    return Report(lines, [target], notes)
