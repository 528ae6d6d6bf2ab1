"""KV blocks: hit ratio of cache policies on real traces, configured on the first half and scored on the second.

DIR holds `traces/mooncake_{conversation,synthetic}.jsonl`. Every policy serves the whole trace; hits of the second half
of its requests count. Leaves only are evicted; a block is a hit when all that come before it are cached.

ours       `survival` with the classes and prior that hit most in the first half of the trace, all sizes together;
           beside it the same with ghosts for twice the capacity, and with a history of everything
reference  the sketch of the survival index, which never forgets a block; leaf-LRU; SLRU and LRU-2 with a history of
           everything (they too never forget), and SLRU with our bound
source     the hybrid of A4.2 as it is written (an eviction priority with a raw rank), and well defined
trivial    FIFO, random
check      Belady with bypass: the bound
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.subjects.eviction_sketch import hybrid_as_written, random_leaf, survival_sketch
from benchmarks.subjects.report import Line, Report, Target
from stabilitykit.mitigations.kv.simulate import hits_of
from stabilitykit.mitigations.kv.trace import Trace, read_trace

TITLE = "Eviction of KV blocks"

Hits = NDArray[np.int64]
TRACES = ("conversation", "synthetic")
SIZES: Mapping[str, float] = {"1 %": 0.01, "5 %": 0.05, "10 %": 0.1, "25 %": 0.25, "1k": 1000, "10k": 10000}
DRAWS = 1000
CHOICES: tuple[dict[str, Any], ...] = tuple(
    {"classes": classes, "prior": prior, "every": every}
    for classes in ("uses", "prompts")
    for prior in (50.0, 100.0, 200.0, 400.0)
    for every in (50,)
)


def methods(trace: Trace, dense: Trace, cap: int, choice: dict[str, Any]) -> Iterator[tuple[str, str, Hits]]:
    """Run every method at one size."""
    everything = dense.distinct
    yield "trivial", "FIFO", hits_of(trace, "fifo", cap)
    yield "trivial", "random", random_leaf(trace.blocks, trace.starts, cap)
    written = hybrid_as_written(dense.blocks, dense.starts, dense.at_s, everything, cap)
    yield "source", "hybrid as written", written
    yield "source", "hybrid, well defined", hits_of(trace, "hybrid", cap)
    yield "reference", "leaf-LRU", hits_of(trace, "lru", cap)
    yield "reference", "LRU-2, all history", hits_of(trace, "lru-k", cap, ghosts=everything)
    yield "reference", "SLRU, all history", hits_of(trace, "slru", cap, ghosts=everything)
    yield "reference", "SLRU, ghosts 2x", hits_of(trace, "slru", cap)
    sketch = survival_sketch(dense.blocks, dense.starts, dense.partial, everything, cap)
    yield "reference", "survival sketch, all history", sketch
    yield "ours", "survival", hits_of(trace, "survival", cap, **choice)
    yield "ours", "survival, ghosts 2x", hits_of(trace, "survival", cap, ghosts=2 * cap, **choice)
    yield "ours", "survival, all history", hits_of(trace, "survival", cap, ghosts=everything, **choice)
    yield "check", "Belady with bypass", hits_of(trace, "belady", cap)


def best_choice(trace: Trace) -> dict[str, Any]:
    """Give the settings that hit most in the first half, over all sizes together; nothing else is looked at."""
    first, distinct = trace.part(0, len(trace) // 2), trace.distinct

    def hits(choice: dict[str, Any]) -> int:
        return sum(int(hits_of(first, "survival", blocks(a, distinct), **choice).sum()) for a in SIZES.values())

    return max(CHOICES, key=hits)


def blocks(amount: float, distinct: int) -> int:
    """Give a size in blocks: shares are of all different blocks of the trace."""
    return int(amount) if amount > 1 else max(int(distinct * amount), 1)


def densely(trace: Trace) -> Trace:
    """Number the blocks from 0 on."""
    _, numbers = np.unique(trace.blocks, return_inverse=True)
    return Trace(numbers.astype(np.int64), trace.starts, trace.at_s, trace.partial)


def resampled(lengths: Hits, seed: int = 0) -> NDArray[np.float64]:
    """Weights of the requests in each bootstrap draw, f8[draws, requests]."""
    count = len(lengths)
    return np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), DRAWS).astype(float)


def run(data: Path) -> Report:
    lines: dict[tuple[str, str, str], tuple[dict[str, float], dict[str, tuple[float, float]]]] = {}
    for name in TRACES:
        trace = read_trace(data / "traces" / f"mooncake_{name}.jsonl")
        half, dense = len(trace) // 2, densely(trace)
        lengths = np.diff(trace.starts)[half:]
        weights, choice = resampled(lengths), best_choice(trace)
        for size, amount in SIZES.items():
            cap = blocks(amount, trace.distinct)
            for kind, method, hits in methods(trace, dense, cap, choice):
                figures, intervals = lines.setdefault((name, method, kind), ({}, {}))
                figures[size] = 100.0 * float(hits[half:].sum() / lengths.sum())
                drawn = 100.0 * (weights @ hits[half:]) / (weights @ lengths)
                low, high = np.quantile(drawn, (0.025, 0.975))
                intervals[size] = (float(low), float(high))
    return Report([Line(*key, *found) for key, found in lines.items()], targets(lines), NOTES)


def targets(lines: Mapping[tuple[str, str, str], tuple[dict[str, float], Any]]) -> list[Target]:
    """What was asked for, size by size."""
    at = {key[:2]: figures for key, (figures, _) in lines.items()}
    found = []
    for size in SIZES:
        ours = at["conversation", "survival"][size]
        sketch = at["conversation", "survival sketch, all history"][size]
        found.append(Target(f"conversation, {size}: survival, against the sketch", sketch, ours))
    for size in SIZES:
        slru = at["synthetic", "SLRU, all history"][size]
        found.append(Target(f"synthetic, {size}: survival, against SLRU", slru, at["synthetic", "survival"][size]))
    for name in TRACES:
        worst = min(at[name, "survival"][size] - at[name, "leaf-LRU"][size] for size in SIZES)
        found.append(Target(f"{name}: survival minus leaf-LRU, worst size, points", -0.1, worst))
    return found


NOTES = (
    "Hits in per cent of blocks of the second half. Brackets resample its requests.",
    "Methods marked `all history` remember every block they ever saw, those marked `ghosts 2x` at most twice the "
    "capacity beside what is cached. `survival` may remember 65,536 blocks even where twice the capacity is less.",
    "How blocks are told apart was chosen by the first halves. Tried there without a clear gain: interpolating between "
    "ages, finer and coarser ages, the gaps between a block's own visits, the mean with the coarser class, more "
    "shrinkage, counting every request anew. Coarser sizes of prompts would do better where a size is missed, but only "
    "the second halves say so. Seven of these variants were looked at on the second halves as well.",
)
