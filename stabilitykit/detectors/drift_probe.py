"""Has the topic changed? A linear model over distances, message lengths and the embedding, calibrated on dialogues.

``intent_drift`` compares one distance with a bound. Here several are weighed, by a model from a file that
``stabilitykit calibrate drift`` writes for one embedding model (and, with labels, for one kind of dialogue). An
embedding is scaled to length 1, and the mean of its model, the file's ``centre``, is taken away: z. The features are

==================  =============================================================================
``previous``        1 - cos(z, z of the turn before)
``nearest``         1 - the greater cosine to the two turns before
``topic``           1 - cos(z, mean of the turns before, the last one counting 0.7)
``length``          the length of z: how much a message says beyond what all say
``length_before``   the same of the turn before
``message``         log(1 + tokens of the user's message)
``message_before``  the same of the turn before
``answer``          log(1 + tokens of the answer between them)
``asks``            1 when the user's message has a question mark, else 0
``asked_before``    the same of the turn before
==================  =============================================================================

and, when the file has them, the components of ``z/|z|``, of the one before, and their products (``now``, ``before``,
``product``). The logistic function of the weighted sum is ``probability``; over the file's ``threshold`` it is a
drift. What was fitted on which data, and how well it did there, the file's writer says; the figures on four sets of
dialogues are those of the subjects `drift`, `drift_probe` and `drift_domains` of benchmarks/accuracy.py.

The tokens of a message are the growth of ``input_tokens`` less the answer before. An unknown length (the first turns,
after a cut history, or when the host does not count) weighs as much as the mean of the calibration data, and so does
an unknown number of question marks.

A zero or non-finite vector, or one of another dimension, is unknown and changes nothing.

When not to use it
------------------
With an embedding model other than the file's: the numbers mean nothing then. A file with weights on the components
(1,152 of them) knows the kind of dialogue it was calibrated on, and loses most of its lead on another kind (subject
`drift_domains`); one without them loses less.

References
----------
.. [1] M. A. Hearst, "TextTiling", Computational Linguistics 23(1), 1997.
.. [2] J. Mu, P. Viswanath, "All-but-the-Top", ICLR 2018: taking the common mean away.
.. [3] formulas A2.4: the calibrated linear score.

Examples
--------
A model of one feature: a distance of 0.9 to the turn before is even odds.

>>> from stabilitykit.detectors.drift_probe import DRIFT_PROBE
>>> from stabilitykit.detectors.trace import trace
>>> from stabilitykit.signals import Weights
>>> model = Weights("", {"centre": [0.0, 0.0], "features": [10.0] + [0.0] * 9, "means": [0.0] * 10,
...                      "bias": [-9.0], "threshold": [0.5]})
>>> turns = trace(DRIFT_PROBE, [[1.0, 0.1], [1.0, 0.3], [-0.2, 1.0]], {"model": model, "dim": 2})
>>> [(out["is_drift"], round(out["probability"], 2)) for out in turns]
[(nan, nan), (0.0, 0.0), (1.0, 0.52)]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from stabilitykit.kernels import kernel
from stabilitykit.kernels.centred import centred_products, keep_centred, weighted_products
from stabilitykit.kernels.cosine import dot
from stabilitykit.kernels.guard import GUARD
from stabilitykit.kernels.pointers import Block
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["DRIFT_PROBE", "FEATURES", "TOPIC_SHARE", "drift_probe_kernel"]

FEATURES = (
    *("previous", "nearest", "topic", "length", "length_before"),
    *("message", "message_before", "answer", "asks", "asked_before"),
)
"""Order of the weights in a file."""
TOPIC_SHARE = 0.7
"""Weight of the newest vector in the mean of the topic; 0.3 to 0.7 make no difference on the dialogues measured."""
PREVIOUS, NEAREST, TOPIC, LENGTH, LENGTH_BEFORE, MESSAGE, MESSAGE_BEFORE, ANSWER, ASKS, ASKED_BEFORE = range(10)
DIM, THRESHOLD, BIAS, IS_LINEAR, WEIGHTS, MEANS, CENTRE = 0, 1, 2, 3, 4, 14, 24
"""Places in c; behind the centre the three rows of a model with weights on components."""
SEEN, LAST_LENGTH, TOPIC_LENGTH, LATER, PROMPT, OUTPUT, LAST_MESSAGE, LOGIT, ASKED = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""Places in f. Numbers of the turn before are kept one greater, 0 is unknown; LOGIT collects the sum of a turn."""


@kernel
def grown(prompt: float, f: Block) -> float:
    """Give one more than the tokens of the new message; 0 when they are unknown."""
    if math.isnan(prompt) or float(f[PROMPT]) == 0.0 or float(f[OUTPUT]) == 0.0:
        return 0.0
    return max(prompt - (float(f[PROMPT]) - 1.0) - (float(f[OUTPUT]) - 1.0) + 1.0, 0.0)


@kernel
def weigh(f: Block, c: Block, feature: int, value: float) -> int:
    """Add a feature to the sum, as its mean when it is unknown; gives 0."""
    f[LOGIT] = float(f[LOGIT]) + float(c[WEIGHTS + feature]) * (
        float(c[MEANS + feature]) if math.isnan(value) else value
    )
    return 0


@kernel
def weigh_tokens(f: Block, c: Block, feature: int, kept: float) -> int:
    """Add a number of tokens that is kept one greater; gives 0."""
    return weigh(f, c, feature, math.log(kept) if kept >= 1.0 else math.nan)


@kernel
def asks_of(questions: float) -> float:
    """Give 1 with a question mark, 0 without, NaN where it is unknown."""
    return min(questions, 1.0) if not math.isnan(questions) else math.nan


@kernel
def distance(product: float, length: float) -> float:
    """Give 1 - cosine, inside 0 to 2; 1 for a mean without direction."""
    return min(max(1.0 - product / length, 0.0), 2.0) if length > 0.0 else 1.0


@kernel
def probability_of(logit: float) -> float:
    """Give the logistic function."""
    return 1.0 / (1.0 + math.exp(-min(max(logit, -700.0), 700.0)))


@kernel
def drift_probe_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Measure against the two turns before and the topic, weigh, then keep; see the module for c."""
    out, dim = io[4], int(c[DIM])
    x[out] = x[out + 1] = x[out + 3] = math.nan
    x[out + 2] = probability_of(float(c[THRESHOLD]))
    prompt, answer = float(x[io[1]]), float(x[io[2]])
    message = grown(prompt, f)
    asks = asks_of(float(x[io[3]]))
    is_usable = False
    if n[io[0]] == dim:
        u = arr[io[0]]
        square = dot(u, 0, u, 0, dim)
        is_usable = square > 0.0 and square < math.inf
        if is_usable:
            look(x, f, v, c, u, 1.0 / math.sqrt(square), message, asks, out)
    if is_usable or not math.isnan(prompt):
        f[PROMPT] = 0.0 if math.isnan(prompt) else prompt + 1.0
        f[OUTPUT] = 0.0 if math.isnan(answer) else answer + 1.0
        f[LAST_MESSAGE] = message
        f[ASKED] = 0.0 if math.isnan(asks) else asks + 1.0
    return 0


@kernel
def look(x: Block, f: Block, v: Block, c: Block, u: Block, scale: float, message: float, asks: float, out: int) -> int:
    """Compare one usable vector with what is kept, and keep it; gives 0."""
    dim, seen = int(c[DIM]), int(f[SEEN])
    one, two, topic = dim * ((seen + 1) % 2), dim * (seen % 2), 2 * dim
    now, later, both = 0.0, 0.0, 0.0
    if float(c[IS_LINEAR]) != 0.0:
        square, z1, z2, zm, now, later, both = weighted_products(u, scale, c, CENTRE, v, one, two, topic, dim)
    else:
        square, z1, z2, zm = centred_products(u, scale, c, CENTRE, v, one, two, topic, dim)
    if not square > 0.0:
        return 0
    length = math.sqrt(square)
    if seen > 0:
        previous = distance(z1, length)
        nearest = min(previous, distance(z2, length)) if seen > 1 else previous
        f[LOGIT] = float(c[BIAS]) + (now + both) / length + float(f[LATER])
        weigh(f, c, PREVIOUS, previous)
        weigh(f, c, NEAREST, nearest)
        weigh(f, c, TOPIC, distance(zm, length * float(f[TOPIC_LENGTH])))
        weigh(f, c, LENGTH, length)
        weigh(f, c, LENGTH_BEFORE, float(f[LAST_LENGTH]))
        weigh_tokens(f, c, MESSAGE, message)
        weigh_tokens(f, c, MESSAGE_BEFORE, float(f[LAST_MESSAGE]))
        weigh_tokens(f, c, ANSWER, float(f[OUTPUT]))
        weigh(f, c, ASKS, asks)
        weigh(f, c, ASKED_BEFORE, float(f[ASKED]) - 1.0 if float(f[ASKED]) > 0.0 else math.nan)
        logit = float(f[LOGIT])
        x[out] = 1.0 if logit > float(c[THRESHOLD]) + GUARD else 0.0
        x[out + 1] = probability_of(logit)
        x[out + 3] = nearest
    share = TOPIC_SHARE if seen > 0 else 1.0
    f[TOPIC_LENGTH] = math.sqrt(keep_centred(u, scale, c, CENTRE, length, v, two, topic, share, dim))
    f[LAST_LENGTH], f[LATER] = length, later / length
    f[SEEN] = float(seen + 1)
    return 0


def _check(settings: Mapping[str, Any]) -> str:
    """Say what a model file lacks."""
    if settings["model"] is None:
        return "it needs `model`, a file that `stabilitykit calibrate drift` writes"
    arrays, dim = settings["model"].arrays, int(settings["dim"])
    wanted = {"centre": dim, "features": len(FEATURES), "means": len(FEATURES), "bias": 1, "threshold": 1}
    if "product" in arrays:
        wanted |= {"now": dim, "before": dim, "product": dim}
    wrong = [name for name, size in wanted.items() if np.shape(arrays.get(name)) != (size,) or _is_text(arrays[name])]
    if wrong:
        return f"its model needs `{wrong[0]}` of {wanted[wrong[0]]} numbers"
    return "" if 0.0 < float(arrays["threshold"][0]) < 1.0 else "the threshold of its model is no probability"


def _is_text(array: Any) -> bool:
    return np.asarray(array).dtype.kind == "U"


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    model = settings["model"].arrays
    threshold, linear = float(model["threshold"][0]), "product" in model
    rows = [model[name] for name in ("features", "means", "centre", *(("now", "before", "product") if linear else ()))]
    numbers = (float(a) for row in rows for a in row)
    limit = math.log(threshold / (1.0 - threshold))
    return (float(settings["dim"]), limit, float(model["bias"][0]), float(linear), *numbers)


DRIFT_PROBE = DetectorSpec(
    type="drift_probe",
    doc="probability that the user's message begins another topic, by a calibrated linear model",
    inputs={
        "input": "embedding",
        "prompt": "input_tokens",
        "answer": "output_tokens",
        "questions": "user_questions",
    },
    settings=(
        SettingSpec("model", None, "model file of `stabilitykit calibrate drift`", "file", "file", shapes_memory=True),
        SettingSpec("dim", 384, "dimension of the embedding", kind="count", lo=1, hi=8192, shapes_memory=True),
    ),
    outputs=(
        OutputSpec("is_drift", "bool", "the probability is over the model's threshold", kind="bool", lo=0.0, hi=1.0),
        OutputSpec("probability", "ratio", "that this message begins another topic", lo=0.0, hi=1.0),
        OutputSpec("threshold", "ratio", "of the model", lo=0.0, hi=1.0),
        OutputSpec("distance", "ratio", "centred distance to the nearer of the last two", lo=0.0, hi=2.0),
    ),
    kernel=drift_probe_kernel,
    layout=lambda settings: Layout(f8=9, vec=3 * int(settings["dim"])),
    config=_config,
    model_bound=True,
    on_applied={"reset_context": "rebase", "trim_context": "rebase", "rollback_snapshot": "rebase"},
    check=_check,
)
"""See the module."""
