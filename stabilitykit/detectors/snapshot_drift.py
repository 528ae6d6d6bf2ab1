"""How far the model's memory of the conversation has moved since the last snapshot, from a few bytes.

A snapshot is the mean key or value vector of some layers. What is kept of it is a signature of 256 bits a layer, not
the vectors; the cosine to the next snapshot is estimated from the bits that differ. Below .72 the source resets the
context.

Inputs
------
input
    The vectors of the sampled layers, one after the other (``snapshot``). They should be means over tokens, so that
    their length does not depend on the number of tokens, and the layers those of the model (12, 24 and 32 of 61, say).

Settings
--------
layers
    How many vectors the snapshot holds; their dimension is its length divided by this.
bits
    Bits of a layer's signature, in whole words of 32. The error of the estimate falls with its root: .131, .093, .066
    and .046 for 64, 128, 256 and 512 bits (formulas B5.1).
decision
    What ``similarity`` is: ``any`` (default): the least of the layers, so that one changed layer is enough.
    ``majority``: below a limit exactly when more than half of the layers are. ``mean``: their mean.

Outputs
-------
similarity
    Estimated cosine to the snapshot before. Unknown on the first one.
worst_similarity, worst_layer
    The least of the layers, and which one it is (from 0).
version
    The hyperplanes of the signatures. Memory that was kept by a library with others starts afresh.

Notes
-----
A snapshot with a vector of zeros, or of a length that is no multiple of ``layers``, is unknown and changes nothing. One
with another dimension (another model, other layers) starts afresh: it is kept, and compared with the next one. After a
receipt for a reset, trim, rollback or summary the memory starts afresh, too.

Few bits decide badly: the source's limit of three differing bits of 64 calls a cosine of .95 a change nine times in
ten.

When not to use it
------------------
On hosted APIs and servers that do not show their cache. Not for a single decision near the limit: with 256 bits one in
fifteen snapshots with cosines between .3 and 1 falls on the wrong side (``simhash`` in the accuracy report).

References
----------
M. S. Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002. Formulas B5.1.

Examples
--------
Two layers of four components; the second one turns round on turn 3:

>>> from stabilitykit.detectors.snapshot_drift import SNAPSHOT_DRIFT
>>> from stabilitykit.detectors.trace import trace
>>> a, b = [1.0, 2.0, 0.5, -1.0], [0.5, 1.0, -2.0, 3.0]
>>> turns = [[*a, *b], [*a, *b], [*a, *(-x for x in b)]]
>>> for out in trace(SNAPSHOT_DRIFT, turns, {"layers": 2}):
...     print(out["similarity"], out["worst_layer"])
nan nan
1.0 0.0
-1.0 1.0
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.pointers import Block, offset_f8
from stabilitykit.kernels.simhash import VERSION, cosine_estimate, differing_bits, is_direction, pool, sign_word
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, Reaction, SettingSpec

__all__ = ["SNAPSHOT_DRIFT", "snapshot_drift_kernel"]

DECISIONS = ("any", "majority", "mean")
ANY, MAJORITY, MEAN = 0.0, 1.0, 2.0
KEPT, WIDTH, SIMILARITY = 0, 1, 2
"""Places in f: version of the kept signatures (0: none), dimension, then the similarity of each layer and 32 sums."""
WORD = 32
REBASE: dict[str, Reaction] = dict.fromkeys(
    ("reset_context", "trim_context", "rollback_snapshot", "insert_summary"), "rebase"
)


@kernel
def replace_signature(u: Block, at: int, width: int, h: Block, place: int, words: int, p: Block, sums: Block) -> int:
    """Put the signature of u[at:at+width] in its place and count the bits that differ from what was there."""
    differing = 0
    for k in range(words):
        made = sign_word(u, at, width, p, sums, k)
        differing += differing_bits(made, h[place + k])
        h[place + k] = made
    return differing


@kernel
def middle_similarity(f: Block, layers: int) -> float:
    """Give the similarity that is below a limit exactly when more than half of the layers are."""
    found = math.nan
    for i in range(layers):
        value = float(f[SIMILARITY + i])
        less, same = 0, 0
        for j in range(layers):
            less += 1 if float(f[SIMILARITY + j]) < value else 0
            same += 1 if float(f[SIMILARITY + j]) == value else 0
        if less <= layers // 2 and layers // 2 < less + same:
            found = value
    return found


@kernel
def worst_of(f: Block, layers: int) -> int:
    """Give the first layer with the least similarity."""
    worst = 0
    for i in range(1, layers):
        worst = i if float(f[SIMILARITY + i]) < float(f[SIMILARITY + worst]) else worst
    return worst


@kernel
def decided(f: Block, layers: int, decision: float) -> float:
    """Give one similarity for all layers."""
    if decision == MAJORITY:
        return middle_similarity(f, layers)
    if decision == MEAN:
        total = 0.0
        for i in range(layers):
            total += float(f[SIMILARITY + i])
        return total / layers
    return float(f[SIMILARITY + worst_of(f, layers)])


@kernel
def snapshot_drift_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Sign, compare, keep; c is ``layers, words, decision`` and the pool."""
    layers, words, count, out = int(c[0]), int(c[1]), n[io[0]], io[1]
    for k in range(4):
        x[out + k] = math.nan
    width = count // layers
    if width == 0 or width * layers != count:
        return 0
    for i in range(layers):
        if not is_direction(arr[io[0]], i * width, width):
            return 0
    is_comparable = float(f[KEPT]) == float(VERSION) and float(f[WIDTH]) == float(width)
    for i in range(layers):
        differing = replace_signature(
            arr[io[0]], i * width, width, h, i * words, words, offset_f8(c, 3), offset_f8(f, SIMILARITY + layers)
        )
        f[SIMILARITY + i] = cosine_estimate(differing, 32 * words)
    f[KEPT] = float(VERSION)
    f[WIDTH] = float(width)
    x[out + 3] = float(VERSION)
    if is_comparable:
        worst = worst_of(f, layers)
        x[out] = decided(f, layers, float(c[2]))
        x[out + 1] = float(f[SIMILARITY + worst])
        x[out + 2] = float(worst)
    return 0


def _words(settings: Mapping[str, Any]) -> int:
    return int(settings["bits"]) // WORD


def _layout(settings: Mapping[str, Any]) -> Layout:
    layers = int(settings["layers"])
    return Layout(f8=SIMILARITY + layers + WORD, u4=layers * _words(settings))


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    words = _words(settings)
    head = float(settings["layers"]), float(words), float(DECISIONS.index(settings["decision"]))
    return head + pool(WORD * words)


SNAPSHOT_DRIFT = DetectorSpec(
    type="snapshot_drift",
    doc="how similar the model's memory of the conversation is to what it was at the last snapshot",
    inputs={"input": "snapshot"},
    settings=(
        SettingSpec(
            "layers",
            3,
            "vectors in a snapshot; the source samples layers 12, 24 and 32",
            kind="count",
            lo=1,
            hi=64,
            shapes_memory=True,
        ),
        SettingSpec(
            "bits",
            256,
            "bits of a layer's signature, in whole words of 32 (formulas B5.1: 256 decide .93 of all right)",
            kind="count",
            lo=32,
            hi=1024,
            shapes_memory=True,
        ),
        SettingSpec("decision", "any", "what the similarity of several layers is", "enum", "enum", values=DECISIONS),
    ),
    outputs=(
        OutputSpec("similarity", "ratio", "estimated cosine to the snapshot before", lo=-1.0, hi=1.0),
        OutputSpec("worst_similarity", "ratio", "the least of the layers", lo=-1.0, hi=1.0),
        OutputSpec("worst_layer", "count", "which layer that is, from 0", "count", lo=0.0, hi=63.0),
        OutputSpec("version", "count", "the hyperplanes of the signatures", "count", lo=1.0),
    ),
    kernel=snapshot_drift_kernel,
    layout=_layout,
    config=_config,
    model_bound=True,
    on_applied=REBASE,
)
"""See the module."""
