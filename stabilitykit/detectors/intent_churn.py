"""Is it unclear what the user wants, and does it keep changing? Entropy of the intents and their switches.

What the classes are is up to the host. Their probabilities come with the turn (``intent_probs``), or are made here,
in the pass, from the turn's ``embedding``: a ``model`` file of ``stabilitykit calibrate intent`` holds the weights W
and b of a linear classifier, and the probabilities are softmax(W u + b) of the embedding scaled to length 1.
Probabilities that the host gives come first.

``entropy_nats`` is -sum p ln p and ``entropy_ratio`` that over ln C for C classes. The source's rule, three entropies
in a row above 2.1 and at least two switches of the main intent in five turns, does not name its unit: in nats it needs
more than 8.2 classes, in bits 4.3, and with fewer can never fire. Hence a bound on the ratio; its default is 2.1 nats
of 10 classes. Five turns have four adjacent pairs; a pair with the class ``unknown`` on one side is no switch.

Probabilities that are negative, not finite or miss 1 by more than 0.01 in their sum, fewer than two classes, and a
zero, non-finite or wrongly sized embedding are unknown and change nothing. Another number of classes is another
classifier: the memory starts afresh.

When not to use it
------------------
With intents that are no alternatives (several may hold at once): their entropy is no doubt. A classifier that is sure
and wrong looks clear here; one that is calibrated badly needs its own bound (`intent` of benchmarks/accuracy.py prints
both for the linear model).

References
----------
.. [1] C. E. Shannon, "A Mathematical Theory of Communication", Bell System Technical Journal 27, 1948.
.. [2] formulas B5.2.

Examples
--------
Five turns between three intents, the last three of them unclear:

>>> from stabilitykit.detectors.intent_churn import INTENT_CHURN
>>> from stabilitykit.detectors.trace import trace
>>> probs = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.36, 0.32, 0.32], [0.32, 0.36, 0.32], [0.32, 0.32, 0.36]]
>>> for out in trace(INTENT_CHURN, probs):
...     print(round(out["entropy_ratio"], 3), out["intent"], out["switches"], out["unclear_turns"], out["is_churn"])
0.582 0.0 0.0 0.0 0.0
0.582 1.0 1.0 0.0 0.0
0.999 0.0 2.0 1.0 0.0
0.999 1.0 3.0 2.0 0.0
0.999 2.0 4.0 3.0 1.0
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from stabilitykit.kernels import kernel
from stabilitykit.kernels.class_entropy import given_entropy, linear_entropy
from stabilitykit.kernels.cosine import dot
from stabilitykit.kernels.guard import GUARD
from stabilitykit.kernels.pointers import Block
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["INTENT_CHURN", "intent_churn_kernel"]

LIMIT, TURNS, SWITCHES, WINDOW, UNKNOWN, CLASSES, DIM, ROWS = range(8)
"""Places in c; the rows of weights of the model follow, one for each class, then the biases."""
SIZE, UNCLEAR, COUNT, MAIN = 0, 1, 2, 3
"""Places in w: classes, turns above the bound, main intents kept, then these, oldest first."""
MOST = 65535
"""Greatest number that w holds: more classes are unknown, more turns count as this many."""


@kernel
def push_main(w: Block, main: int, window: int) -> int:
    """Append a main intent; gives 0."""
    n = int(w[COUNT])
    if n == window:
        for i in range(window - 1):
            w[MAIN + i] = w[MAIN + i + 1]
        n -= 1
    w[MAIN + n] = main
    w[COUNT] = n + 1
    return 0


@kernel
def count_switches(w: Block, unknown: int) -> int:
    """Count adjacent pairs of known, different main intents."""
    found = 0
    for i in range(int(w[COUNT]) - 1):
        a, b = int(w[MAIN + i]), int(w[MAIN + i + 1])
        found += 1 if a != b and a != unknown and b != unknown else 0
    return found


@kernel
def intent_churn_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Take this turn's probabilities, then count what the last turns were."""
    out, size, entropy, main = io[2], 0, math.nan, 0
    for k in range(6):
        x[out + k] = math.nan
    if n[io[0]] > 0:
        size = n[io[0]]
        if size > 1 and size <= MOST:
            entropy, main = given_entropy(arr[io[0]], size)
    elif c[CLASSES] > 0.0 and n[io[1]] == int(c[DIM]):
        size, dim, u = int(c[CLASSES]), int(c[DIM]), arr[io[1]]
        square = dot(u, 0, u, 0, dim)
        if square > 0.0 and square < math.inf:
            entropy, main = linear_entropy(c, ROWS, ROWS + size * dim, u, 1.0 / math.sqrt(square), dim, size)
    if math.isnan(entropy):
        return 0
    if int(w[SIZE]) != size:
        w[SIZE], w[UNCLEAR], w[COUNT] = size, 0, 0
    ratio = min(entropy / math.log(float(size)), 1.0)
    unclear = min(int(w[UNCLEAR]) + 1, MOST) if ratio > float(c[LIMIT]) + GUARD else 0
    w[UNCLEAR] = unclear
    push_main(w, main, int(c[WINDOW]))
    switches = count_switches(w, int(c[UNKNOWN]))
    x[out], x[out + 1] = entropy, ratio
    x[out + 2], x[out + 3], x[out + 4] = float(main), float(switches), float(unclear)
    x[out + 5] = 1.0 if float(unclear) >= float(c[TURNS]) and float(switches) >= float(c[SWITCHES]) else 0.0
    return 0


def _check(settings: Mapping[str, Any]) -> str:
    """Say what a model file lacks."""
    if settings["model"] is None:
        return ""
    arrays = settings["model"].arrays
    rows, bias = np.asarray(arrays.get("weights", ())), np.asarray(arrays.get("bias", ()))
    is_text = "U" in (rows.dtype.kind, bias.dtype.kind)
    if is_text or rows.ndim != 2 or not rows.size or bias.shape != rows.shape[:1] or not 2 <= len(bias) <= MOST:
        return "its model needs `weights`, a row of numbers for each of two classes or more, and as many in `bias`"
    return ""


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    head = (
        float(settings["limit"]),
        float(settings["turns"]),
        float(settings["switches"]),
        float(settings["window"]),
        float(settings["unknown"]),
    )
    if settings["model"] is None:
        return (*head, 0.0, 0.0)
    arrays = settings["model"].arrays
    rows, bias = np.asarray(arrays["weights"]), np.asarray(arrays["bias"])
    return (*head, *map(float, rows.shape), *rows.ravel().tolist(), *bias.tolist())


INTENT_CHURN = DetectorSpec(
    type="intent_churn",
    doc="how unclear the user's intent is, and how often the main intent changes",
    inputs={"probs": "intent_probs", "input": "embedding"},
    settings=(
        SettingSpec("model", None, "model file of `stabilitykit calibrate intent`", "file", "file", shapes_memory=True),
        SettingSpec("limit", 0.912, "entropy / ln C above which a turn is unclear", "ratio", lo=0.0, hi=1.0),
        SettingSpec("turns", 3, "unclear turns in a row", kind="count", lo=1, hi=255),
        SettingSpec("switches", 2, "switches of the main intent", kind="count", lo=1, hi=63),
        SettingSpec("window", 5, "turns in which switches count", kind="count", lo=2, hi=64, shapes_memory=True),
        SettingSpec("unknown", -1, "index of the class for no known intent; -1: none", kind="count", lo=-1, hi=1e6),
    ),
    outputs=(
        OutputSpec("entropy_nats", "nats", "entropy of the intents", lo=0.0),
        OutputSpec("entropy_ratio", "ratio", "entropy / ln C, 1 when all are alike", lo=0.0, hi=1.0),
        OutputSpec("intent", "count", "index of the likeliest intent", kind="count", lo=0.0),
        OutputSpec("switches", "count", "switches of the main intent in the window", kind="count", lo=0.0),
        OutputSpec("unclear_turns", "count", "turns above the limit in a row", kind="count", lo=0.0),
        OutputSpec("is_churn", "bool", "enough unclear turns and switches", kind="bool", lo=0.0, hi=1.0),
    ),
    kernel=intent_churn_kernel,
    layout=lambda settings: Layout(u2=MAIN + int(settings["window"])),
    config=_config,
    model_bound=True,
    on_applied={"reset_context": "rebase", "rollback_snapshot": "rebase"},
    check=_check,
)
"""See the module."""
