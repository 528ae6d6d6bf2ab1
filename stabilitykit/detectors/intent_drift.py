"""Has the user's intent moved away from the turns before? Cosine distance against its own past.

The distance is ``1 - cos`` between the embedding of this turn and the previous one
(``score: previous``), the smaller of the distances to the last two (``max2``, from the maximum of
the similarities), the distance to the mean of the turns before (``topic``, the newest counting
half), or how far the distance has risen since it last fell (``depth``, TextTiling's depth without
the future). No absolute threshold carries over from one embedding model to another, so three methods
set it from the conversation:

``prior`` (default)
    mean and deviation of the distances, regularised by ``n0`` imagined distances of mean ``mu0``
    and deviation ``s0``; threshold ``m + k * sd``. Known from the first distance on. A distance
    above the threshold is learned as the threshold.
``source_corrected``
    the source document's rule with its errors removed: the last ``window`` *earlier* distances, at
    least two, deviation not below ``floor``; a fired distance is learned as the threshold.
``source_as_written``
    for comparison: the window contains the distance that is tested. Its z-score is then at most
    ``sqrt(window - 1)``, exactly 2 for a window of 5, so with k = 2 it can never fire; without
    ``tie_guard`` rounding fires at random where four distances are equal (formulas 0.1).

``fixed`` is ``mu0 + k * s0`` whatever was seen: with ``max2`` it is the max-similarity rule.

The defaults of the prior are those of one embedding model: another one needs its own ``mu0`` and
``s0``. Measured out of sample (F1, ROC-AUC; source as written 0 everywhere): TIAGE 0.43, 0.70;
DialSeg711 0.54, 0.88; SGD user turns 0.29, 0.66; CrossWOZ with its own prior 0.36, 0.51, which is
chance (benchmarks/subjects/drift_defaults.py). The distance limits what any threshold can reach.

A zero or non-finite vector, or one of another dimension, is unknown and changes nothing.

When not to use it
------------------
Without an embedding of every user turn from one and the same model, or where jumping is normal (a
list of unrelated questions). With a new embedding model or language measure first: figures like the
last one above are no ground for an action that costs the user something.

References
----------
.. [1] M. A. Hearst, "TextTiling", Computational Linguistics 23(1), 1997.
.. [2] B. P. Welford, "Note on a method for calculating corrected sums of squares", Technometrics 4(3), 1962.
.. [3] formulas A2.4 for the measured figures of each method.

Examples
--------
Six turns on one topic, then an unrelated one:

>>> import math
>>> from stabilitykit.detectors.intent_drift import INTENT_DRIFT
>>> from stabilitykit.detectors.trace import trace
>>> angles = [0.0, 0.3, 0.1, 0.4, 0.2, 0.5, 2.1, 2.2]
>>> vectors = [[math.cos(a), math.sin(a)] for a in angles]
>>> turns = trace(INTENT_DRIFT, vectors, {"dim": 2, "method": "source_corrected", "k": 2.0})
>>> [n for n, out in enumerate(turns, start=1) if out["is_drift"] == 1]
[7]
>>> {name: round(value, 3) for name, value in turns[6].items()}
{'is_drift': 1.0, 'distance': 1.029, 'threshold': 0.135}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.cosine import dot
from stabilitykit.kernels.guard import GUARD
from stabilitykit.kernels.pointers import Block
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["INTENT_DRIFT", "intent_drift_kernel"]

METHODS = ("prior", "source_corrected", "source_as_written", "fixed")
PRIOR, CORRECTED, AS_WRITTEN, FIXED = 0.0, 1.0, 2.0, 3.0
SCORES = ("previous", "max2", "topic", "depth")
PREVIOUS, MAX2, TOPIC, DEPTH = 0.0, 1.0, 2.0, 3.0
TOPIC_SHARE = 0.5
"""Weight of the newest vector in the mean of the topic (formulas A2.4; 0.3 to 0.7 differ little)."""
SEEN = 0
"""Place of the number of vectors seen; the norms of the two kept vectors follow."""
NORMS = 1
COUNT = 3
"""Place of the number of distances; mean and sum of squares, or the window, follow."""
HISTORY = 4


@kernel
def nearest_distance(u: Block, norm: float, f: Block, v: Block, dim: int, kept: int) -> float:
    """Give the cosine distance to the nearest of the ``kept`` last vectors, unknown when there is none."""
    best = math.nan
    for slot in range(min(kept, int(f[SEEN]))):
        size = norm * float(f[NORMS + slot])
        cosine = dot(u, 0, v, slot * dim, dim) / size if size > 0.0 else 0.0
        distance = min(max(1.0 - cosine, 0.0), 2.0)
        if not best <= distance:
            best = distance
    return best


@kernel
def keep_vector(u: Block, norm: float, f: Block, v: Block, dim: int, kept: int) -> int:
    """Put the vector in the place of the oldest kept one; gives 0."""
    slot = int(f[SEEN]) % kept
    for i in range(dim):
        v[slot * dim + i] = u[i]
    f[NORMS + slot] = norm
    f[SEEN] = float(f[SEEN]) + 1.0
    return 0


@kernel
def keep_topic(u: Block, norm: float, f: Block, v: Block, dim: int) -> int:
    """Take the vector's direction into the mean of the topic; gives 0."""
    share = TOPIC_SHARE if float(f[SEEN]) > 0.0 else 1.0
    for i in range(dim):
        v[i] = float(v[i]) + share * (float(u[i]) / norm - float(v[i]))
    f[NORMS] = math.sqrt(dot(v, 0, v, 0, dim))
    f[SEEN] = float(f[SEEN]) + 1.0
    return 0


@kernel
def risen(f: Block, distance: float, at: int) -> float:
    """Give how far distances have risen since they last fell; f[at:] is how many were seen, the last, the valley."""
    if float(f[at]) == 0.0 or distance < float(f[at + 1]):
        f[at + 2] = distance
    f[at], f[at + 1] = 1.0, distance
    return distance - float(f[at + 2])


@kernel
def window_push(f: Block, value: float, window: int) -> int:
    """Append a distance to the window, oldest first; gives 0."""
    n = int(f[COUNT])
    if n < window:
        f[COUNT] = float(n + 1)
        f[HISTORY + n] = value
        return 0
    for i in range(window - 1):
        f[HISTORY + i] = f[HISTORY + i + 1]
    f[HISTORY + window - 1] = value
    return 0


@kernel
def window_bound(f: Block, k: float, floor: float) -> float:
    """Give mean + k * max(deviation, floor) of the window, unknown below two distances."""
    n = int(f[COUNT])
    if n < 2:
        return math.nan
    mean = 0.0
    for i in range(n):
        mean += float(f[HISTORY + i])
    mean /= n
    square = 0.0
    for i in range(n):
        square += (float(f[HISTORY + i]) - mean) * (float(f[HISTORY + i]) - mean)
    return mean + k * max(math.sqrt(square / n), floor)


@kernel
def prior_bound(f: Block, k: float) -> float:
    """Give mean + k * deviation of the imagined and the real distances."""
    return float(f[HISTORY]) + k * math.sqrt(float(f[HISTORY + 1]) / float(f[COUNT]))


@kernel
def prior_learn(f: Block, value: float) -> int:
    """Take one distance into mean and sum of squares (Welford); gives 0."""
    f[COUNT] = float(f[COUNT]) + 1.0
    step = value - float(f[HISTORY])
    f[HISTORY] = float(f[HISTORY]) + step / float(f[COUNT])
    f[HISTORY + 1] = float(f[HISTORY + 1]) + step * (value - float(f[HISTORY]))
    return 0


@kernel
def intent_drift_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Measure, compare, then learn; c is ``method, score, k, floor, window, dim, guard, mu0 + k s0, end of f``."""
    out = io[1]
    dim = int(c[5])
    kept = 2 if float(c[1]) == MAX2 else 1
    window = int(c[4])
    distance = math.nan
    bound = math.nan
    if n[io[0]] == dim:
        u = arr[io[0]]
        square = dot(u, 0, u, 0, dim)
        if 0.0 < square < math.inf:
            norm = math.sqrt(square)
            distance = nearest_distance(u, norm, f, v, dim, kept)
            if float(c[1]) == TOPIC:
                keep_topic(u, norm, f, v, dim)
            else:
                keep_vector(u, norm, f, v, dim, kept)
    known = not math.isnan(distance)
    if known and float(c[1]) == DEPTH:
        distance = risen(f, distance, int(c[8]))
    if float(c[0]) == PRIOR:
        bound = prior_bound(f, float(c[2]))
    elif float(c[0]) == CORRECTED:
        bound = window_bound(f, float(c[2]), float(c[3]))
    elif float(c[0]) == FIXED:
        bound = float(c[7])
    else:
        if known:
            window_push(f, distance, window)
        bound = window_bound(f, float(c[2]), 0.0)
    # The guard is relative to 1 at least: 1 - cos carries the rounding of numbers near 1.
    fires = known and distance > bound + max(bound, 1.0) * float(c[6])
    x[out] = (1.0 if fires else 0.0) if known and not math.isnan(bound) else math.nan
    x[out + 1] = distance
    x[out + 2] = bound
    if known and float(c[0]) == PRIOR:
        prior_learn(f, min(distance, bound))
    if known and float(c[0]) == CORRECTED:
        window_push(f, bound if fires else distance, window)
    return 0


def _layout(settings: Mapping[str, Any]) -> Layout:
    vec = (2 if settings["score"] == "max2" else 1) * int(settings["dim"])
    size = _history_end(settings) + (3 if settings["score"] == "depth" else 0)
    if settings["method"] == "prior":
        n0, mu0, s0 = float(settings["n0"]), float(settings["mu0"]), float(settings["s0"])
        return Layout(f8=size, vec=vec, f8_init=(0.0, 0.0, 0.0, n0, mu0, n0 * s0 * s0, 0.0, 0.0, 0.0)[:size])
    return Layout(f8=size, vec=vec)


def _history_end(settings: Mapping[str, Any]) -> int:
    """Give where the memory of the threshold ends."""
    if settings["method"] in ("prior", "fixed"):
        return HISTORY + (2 if settings["method"] == "prior" else 0)
    return HISTORY + int(settings["window"])


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    return (
        float(METHODS.index(settings["method"])),
        float(SCORES.index(settings["score"])),
        float(settings["k"]),
        float(settings["floor"]),
        float(settings["window"]),
        float(settings["dim"]),
        GUARD if settings["tie_guard"] else 0.0,
        float(settings["mu0"]) + float(settings["k"]) * float(settings["s0"]),
        float(_history_end(settings)),
    )


INTENT_DRIFT = DetectorSpec(
    type="intent_drift",
    doc="distance of the user's message from the turns before, against the conversation's own distances",
    inputs={"input": "embedding"},
    settings=(
        SettingSpec("method", "prior", "how the threshold is set", "enum", "enum", values=METHODS, shapes_memory=True),
        SettingSpec(
            "score",
            "previous",
            "what the distance is measured to",
            "enum",
            "enum",
            values=SCORES,
            shapes_memory=True,
        ),
        SettingSpec(
            "k",
            0.75,
            "deviations above the mean; 0.75 has the best mean F1 (0.42) on three labelled dialogue sets; "
            "the source document's rule has 2",
            lo=0.0,
            hi=100.0,
        ),
        SettingSpec(
            "mu0",
            0.67,
            "prior: imagined mean distance; 0.67: within topics, all-MiniLM-L6-v2 (multilingual-e5-small: 0.12)",
            lo=0.0,
            hi=2.0,
            shapes_memory=True,
        ),
        SettingSpec(
            "s0",
            0.18,
            "prior: imagined deviation; 0.18 likewise (multilingual-e5-small: 0.03)",
            lo=1e-6,
            hi=2.0,
            shapes_memory=True,
        ),
        SettingSpec(
            "n0", 20, "prior: imagined distances (formulas A2.4)", kind="count", lo=1, hi=10000, shapes_memory=True
        ),
        SettingSpec("window", 5, "source methods: distances", kind="count", lo=2, hi=64, shapes_memory=True),
        SettingSpec(
            "floor",
            0.05,
            "source_corrected: least deviation (formulas A2.4); too great for multilingual-e5-small",
            lo=0.0,
            hi=2.0,
        ),
        SettingSpec("dim", 384, "dimension of the embedding", kind="count", lo=1, hi=8192, shapes_memory=True),
        SettingSpec("tie_guard", True, "guard of 1e-9 on the comparison", "bool", "bool"),
    ),
    outputs=(
        OutputSpec("is_drift", "bool", "the distance is above the threshold", kind="bool", lo=0.0, hi=1.0),
        OutputSpec("distance", "ratio", "the score: a cosine distance, or its rise", lo=0.0, hi=2.0),
        OutputSpec("threshold", "ratio", "what the distance is compared with", lo=0.0),
    ),
    kernel=intent_drift_kernel,
    layout=_layout,
    config=_config,
    model_bound=True,
    on_applied={"reset_context": "rebase", "trim_context": "rebase", "rollback_snapshot": "rebase"},
)
"""See the module. Defaults of the prior: benchmarks/subjects/drift_defaults.py.
"""
