"""What top-20 lists tell of the divergence of whole distributions: the estimate's error, and the bound that is one.

    python benchmarks/accuracy.py kl --data DIR

DIR is not read: the distributions were recorded from a real model over its whole vocabulary, with the exact divergence
of every two (tests/golden/distributions.npz, benchmarks/record/distributions.py). Compared are the same positions of
one chat's turns in a row; intervals are over chats. A pair is counted once: the reverse divergence of two distributions
is the forward one of the same two the other way round, so each is measured in one order only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.subjects.report import Line, Report, Target
from stabilitykit.detectors.kl_shift import KL_SHIFT
from stabilitykit.detectors.trace import Instance, compiled_kernel

TITLE = "Divergence of next-token distributions from top-20 lists"
GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden" / "distributions.npz"
VOCABULARY = 49152
K = 20
COVERED = 0.7
FLOOR = 1e-10
DRAWS = 500
LENGTHS = (K, 5)
"""Of the lists whose lower bounds are checked: what APIs give at most, and a short one, which bounds otherwise."""

Floats = NDArray[np.float64]
Pairs = list[tuple[int, int]]


@cache
def golden() -> dict[str, NDArray[Any]]:
    """Give the recorded arrays."""
    with np.load(GOLDEN) as file:
        return {name: file[name] for name in file.files}


def turn_pairs() -> Pairs:
    """Give (previous, current) for each position of each two turns in a row."""
    d = golden()
    at = {
        (int(c), int(t), int(p)): i for i, (c, t, p) in enumerate(zip(d["chat"], d["turn"], d["position"], strict=True))
    }
    return [(at[c, t - 1, p], i) for (c, t, p), i in at.items() if (c, t - 1, p) in at]


def listed(i: int, k: int = K) -> dict[str, NDArray[Any]]:
    """Give the k likeliest tokens, as an API does."""
    d = golden()
    return {"token_ids": d["token_ids"][i, :k].astype(np.int64), "logprobs": d["logprobs"][i, :k]}


def exact(direction: str, old: int, now: int) -> float:
    """Give the divergence over the whole vocabulary."""
    d = golden()
    return float(
        {"forward": d["kl_nats"][now, old], "reverse": d["kl_nats"][old, now], "js": d["js_nats"][now, old]}[direction]
    )


def detected(pairs: Pairs, direction: str = "forward", k: int = K) -> dict[str, Floats]:
    """Give the detector's outputs for pairs of lists."""
    settings = {"direction": direction, "vocab_size": VOCABULARY, "k_max": k}
    detector, lists = (
        Instance(KL_SHIFT, settings, compiled_kernel(KL_SHIFT)),
        {i: listed(i, k) for p in pairs for i in p},
    )
    told = []
    for old, now in pairs:
        detector.reset()
        detector.update(lists[old])
        told.append(detector.update(lists[now]))
    return {name: np.array([t[name] for t in told]) for name in told[0]}


def ends(pair: tuple[int, int]) -> tuple[dict[int, float], dict[int, float]]:
    """Give both lists as probabilities: previous, current."""
    d = golden()
    return tuple(  # type: ignore[return-value]
        dict(zip(d["token_ids"][i, :K].tolist(), np.exp(d["logprobs"][i, :K].astype(float)).tolist(), strict=True))
        for i in pair
    )


def renormalised(pair: tuple[int, int]) -> float:
    """Compare the common tokens only, each side summing to 1."""
    p, q = ends(pair)
    both = p.keys() & q.keys()
    sp, sq = sum(p[t] for t in both), sum(q[t] for t in both)
    return sum(q[t] / sq * np.log(q[t] / sq / (p[t] / sp)) for t in both)


def floored(pair: tuple[int, int]) -> float:
    """Do what the source's code does with lists: a token that is missing counts 1e-10, there is no tail."""
    p, q = ends(pair)
    return sum(v * np.log(v / p.get(t, FLOOR)) for t, v in q.items())


def even(pair: tuple[int, int]) -> float:
    """Give each missing token an even share of what its list leaves open, then compare the rest as one."""
    p, q = ends(pair)
    tp, tq = (max(1 - sum(side.values()), FLOOR) for side in (p, q))
    op, oq = tp / (VOCABULARY - K), tq / (VOCABULARY - K)
    union = p.keys() | q.keys()
    total = sum(q.get(t, oq) * np.log(q.get(t, oq) / p.get(t, op)) for t in union)
    rest = VOCABULARY - len(union)
    return total + rest * oq * np.log(oq / op)


def errors(
    estimate: Floats, truth: Floats, groups: NDArray[Any]
) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """Give median and 95th percentile of the relative error, with intervals over groups."""
    wrong = np.abs(estimate - truth) / truth
    quantiles = lambda at: np.percentile(wrong[at], [50, 95])  # noqa: E731
    rng, names = np.random.default_rng(41), np.unique(groups)
    members = {g: np.flatnonzero(groups == g) for g in names}
    drawn = [quantiles(np.concatenate([members[g] for g in rng.choice(names, len(names))])) for _ in range(DRAWS)]
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    found = dict(zip(("median error", "p95 error"), quantiles(slice(None)).tolist(), strict=True))
    return found, {name: (float(a), float(b)) for name, a, b in zip(found, low, high, strict=True)}


METHODS: tuple[tuple[str, str, Callable[[tuple[int, int]], float]], ...] = (
    ("common tokens renormalised", "trivial", renormalised),
    ("missing tokens 1e-10, no tail", "source", floored),
    ("missing tokens an even share of the tail", "reference", even),
)


def run(data: Path) -> Report:
    """Measure the estimate on turns in a row, and the bound on every pair there is."""
    pairs = turn_pairs()
    coverage = detected(pairs)["coverage_ratio"]
    pairs = [pair for pair, c in zip(pairs, coverage, strict=True) if c >= COVERED]
    chats = golden()["chat"][[now for _, now in pairs]]
    truth = np.array([exact("forward", *pair) for pair in pairs])
    of = f"turns in a row, lists cover {COVERED:.0%} or more"
    lines = [Line(of, name, kind, *errors(np.array([f(p) for p in pairs]), truth, chats)) for name, kind, f in METHODS]
    for d in ("forward", "reverse", "js"):
        wanted = np.array([exact(d, *pair) for pair in pairs])
        lines.append(Line(of, f"kl_shift, {d}", "ours", *errors(detected(pairs, d)["kl_nats"], wanted, chats)))
    ours = next(x for x in lines if x.kind == "ours").figures
    mixed = np.random.default_rng(42).permutation(truth)
    lines.append(
        Line(of, "kl_shift, forward, truths permuted", "check", *errors(detected(pairs)["kl_nats"], mixed, chats))
    )
    lines += [violations(direction, k) for k in LENGTHS for direction in ("forward", "js")]
    worst = max(x.figures["above the exact value"] for x in lines if "above the exact value" in x.figures)
    cases = sum(x.figures["bounds"] for x in lines if "bounds" in x.figures)
    targets = (
        Target("median error of the estimate, forward", 0.25, ours["median error"], at_least=False),
        Target("95th percentile of the error, forward", 0.6, ours["p95 error"], at_least=False),
        Target("lower bounds above the exact value", 0.0, worst, at_least=False),
        Target("distinct lower bounds that were checked", 1e5, cases),
    )
    left_out = len(coverage) - len(pairs)
    return Report(lines, targets, (
        f"{len(pairs)} pairs of {len(np.unique(chats))} chats, {left_out} left out for their coverage.",
        "The reverse bounds are the forward ones of the same two in the other order: they are not counted again.",
        "A bound of 0 is true of any two: only those greater than 0 could be wrong.",
        "That a missing token gets a geometric mean was decided with these chats in sight.",
    ))  # fmt: skip


def every_two(direction: str) -> Pairs:
    """Give every two distributions, in both orders only where these are two divergences."""
    count = len(golden()["chat"])
    return [(a, b) for a in range(count) for b in range(count) if a < b or (a > b and direction != "js")]


def violations(direction: str, k: int) -> Line:
    """Count lower bounds above the exact value over every two of the distributions."""
    pairs = every_two(direction)
    bounds = detected(pairs, direction, k)["lower_nats"]
    above = bounds > np.array([exact(direction, *p) for p in pairs])
    return Line("every two distributions", f"lower bound from top-{k} lists, {direction}", "ours", {
        "bounds": float(len(pairs)), "greater than 0": float((bounds > 0).sum()),
        "above the exact value": float(above.sum()),
    })  # fmt: skip
