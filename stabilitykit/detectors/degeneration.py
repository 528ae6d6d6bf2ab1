"""Answers that go round in circles: exact token cycles, few distinct phrases, the same reply again and again.

A model in a loop answers 200, on time, at full speed. Only its tokens tell. Within an answer this looks for a cycle and
for how much is repeated, across turns for replies that are nearly the same while nothing moves on.

Inputs
------
output
    The generated tokens (``output_token_ids``); the last 1,024 are looked at.
progress
    The host's own count of progress (``progress_count``), optional: tool results that changed, steps done. Replies
    may be the same as long as it moves.
finish
    ``finish_reason``: without ``progress`` an answer that ends in ``tool_calls`` is not compared: polling is no loop.
logprobs
    Log-probabilities of the candidates at one position of the answer, best its end (``top_logprobs``), optional.

Settings
--------
max_period, copies, tokens
    A cycle has a period up to the first, at least so many copies, and covers so many tokens.
repetition
    Share of repeated 3-grams above which an answer is degenerate.
similar
    Share of common 3-grams from which on two replies are nearly the same.
repeats
    Replies in a row like one of the four before, without progress, that make a loop; 2: three copies.
special_from, special_to
    Token ids of the tokenizer's special tokens (the second is excluded), to count those that leak; equal: not told.

Outputs
-------
cycle_period, cycle_copies
    Of the cycle that covers most tokens (a fraction of a copy counts); 0 without one.
repetition_ratio
    1 - distinct 3-grams / 3-grams of the last 256 tokens; unknown below ``tokens`` tokens. Within 0.03.
similarity_ratio
    Share of 3-grams in common with the most similar of the four replies before. Standard error 0.07; unknown for a
    reply below 16 tokens (three copies are then less than a cycle's 48) and for the first.
repeats_count
    Replies in a row that were nearly the same, without progress between them.
special_count
    Special tokens before the last token.
peak_ratio
    Probability of the likeliest candidate: near 1 when log-probabilities have collapsed.
is_degenerate
    A cycle, more repetition than tolerated, or a loop over turns.

Notes
-----
``benchmarks/subjects/degeneration.py`` prints recall and false calls, and the margins of every threshold. A certain
model is not a broken one (it copies a name from the prompt with probability 1), so ``peak_ratio`` is evidence and no
verdict.

When not to use it
------------------
Where repetition is what was asked for (a table of zeros, "repeat after me"). Gibberish that never repeats is not
degenerate in this sense: ``kl_shift`` and ``special_count`` may see it.

References
----------
.. [1] A. Holtzman et al., "The curious case of neural text degeneration", ICLR 2020.
.. [2] P. Li, A. Owen, C.-H. Zhang, "One permutation hashing", NIPS 2012.

Examples
--------
An answer of 40 different tokens, then one that ends in a circle of four:

>>> from stabilitykit.detectors.degeneration import DEGENERATION
>>> from stabilitykit.detectors.trace import trace
>>> answers = [list(range(40)), list(range(100, 120)) + [7, 8, 9, 10] * 15]
>>> turns = trace(DEGENERATION, [{"output": ids} for ids in answers])
>>> [(out["cycle_period"], out["cycle_copies"], out["is_degenerate"]) for out in turns]
[(0.0, 0.0, 0.0), (4.0, 15.0, 1.0)]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.pointers import Block, offset_f8, offset_u4
from stabilitykit.kernels.token_cycle import cycle_spacing, longest_cycle
from stabilitykit.kernels.token_shingles import BINS, MAP_WORDS, distinct_estimate, shared_ratio, shingle_hash
from stabilitykit.signals import FINISH_REASONS, DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["DEGENERATION", "degeneration_kernel"]

TAIL = 1024
"""Tokens that are looked at, from the end."""
CLOSE = 256
"""Tokens whose repetition counts: a loop that begins late in a long answer must not be diluted by what was before."""
REPLIES = 4
LEAST = 16
TOOL_CALLS = float(FINISH_REASONS.index("tool_calls"))
PROGRESS, RUN, PLACE = 0, 1, 2  # places in f
SKETCHES = MAP_WORDS + BINS  # place in h of the replies before, behind the map and the sketch of this one


@kernel
def sketch_reply(h: Block, t: Block, start: int, n: int) -> float:
    """Sketch the 3-grams of ``t[start:n]`` into h behind the map; gives how many of the closing ones are distinct."""
    sketch = offset_u4(h, MAP_WORDS)
    for k in range(BINS):
        sketch[k] = 0
    for i in range(start, n - 2):
        g = shingle_hash(t, i)
        if i >= n - CLOSE:
            word = (g >> 5) & 63
            h[word] = int(h[word]) | (1 << (g & 31))
        k = (g >> 11) & 31
        if sketch[k] == 0 or g < sketch[k]:
            sketch[k] = g
    return distinct_estimate(h)


@kernel
def most_similar(f: Block, h: Block) -> float:
    """Give the share in common with the most similar reply before, NaN for the first."""
    best = math.nan
    for k in range(min(int(f[PLACE]), REPLIES)):
        share = shared_ratio(offset_u4(h, MAP_WORDS), offset_u4(h, SKETCHES + k * BINS))
        if not best >= share:
            best = share
    return best


@kernel
def count_repeat(f: Block, h: Block, is_similar: bool) -> int:
    """Lengthen or end the row of replies that are alike, and remember this one; gives 0."""
    f[RUN] = float(f[RUN]) + 1.0 if is_similar else 0.0
    at = SKETCHES + (int(f[PLACE]) % REPLIES) * BINS
    for k in range(BINS):
        h[at + k] = h[MAP_WORDS + k]
    # Stays within 4 .. 7 once four are there: the place modulo four, and that all are in use.
    f[PLACE] = float(int(f[PLACE]) + 1 if int(f[PLACE]) < 2 * REPLIES - 1 else REPLIES)
    return 0


@kernel
def count_special(t: Block, n: int, low: float, high: float) -> float:
    """Count the special tokens before the last token, NaN when nobody told which they are."""
    count = 0.0
    for i in range(n - 1):
        count += 1.0 if low <= t[i] and t[i] < high else 0.0
    return count if low < high else math.nan


@kernel
def peak(a: Block, n: int) -> float:
    """Give the probability of the likeliest of n candidates, NaN without one."""
    top = -1e30
    for i in range(n):
        top = max(top, float(a[i]))
    return math.exp(min(top, 0.0)) if n > 0 else math.nan


@kernel
def judge_reply(
    x: Block, out: int, f: Block, h: Block, c: Block, t: Block, n: int, is_moving: bool, polls: bool
) -> int:
    """Write what the tokens say, for n of at least 1; gives 0."""
    start = max(n - TAIL, 0)
    longest_cycle(t, start, n, int(c[0]), int(c[1]), int(c[2]), int(c[3]), offset_f8(x, out))
    if float(x[out]) > 0.0:
        x[out + 1] = float(x[out + 1]) / float(x[out])
    distinct = sketch_reply(h, t, start, n)
    if n >= c[2] and n > 2:
        x[out + 2] = max(1.0 - distinct / float(min(n, CLOSE) - 2), 0.0)
    if n >= LEAST:
        share = most_similar(f, h)
        x[out + 3] = share
        if not polls:
            count_repeat(f, h, share >= float(c[5]) and not is_moving)
    x[out + 4] = float(f[RUN])
    x[out + 5] = count_special(t, n, float(c[7]), float(c[8]))
    is_bad = float(x[out]) > 0.0 or float(x[out + 2]) > float(c[4]) or float(f[RUN]) >= float(c[6])
    x[out + 7] = 1.0 if is_bad else 0.0
    return 0


@kernel
def degeneration_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Judge an answer by its tokens.

    c is ``max_period, copies, tokens, spacing, repetition, similar, repeats, special_from, special_to``; f is ``last
    progress (NaN at first), repeats, place and number of replies``; h is the map of 3-grams, this reply's sketch, four
    others.
    """
    out, progress = io[4], float(x[io[1]])
    for k in range(8):
        x[out + k] = math.nan
    x[out + 6] = peak(arr[io[3]], n[io[3]])
    is_moving = not math.isnan(progress) and not math.isnan(float(f[PROGRESS])) and progress != float(f[PROGRESS])
    if is_moving:
        f[RUN] = 0.0
    if not math.isnan(progress):
        f[PROGRESS] = progress
    polls = float(x[io[2]]) == TOOL_CALLS and math.isnan(progress)
    if n[io[0]] > 0:
        judge_reply(x, out, f, h, c, ids[io[0]], n[io[0]], is_moving, polls)
    return 0


def _layout(settings: Mapping[str, Any]) -> Layout:
    return Layout(f8=3, u4=SKETCHES + REPLIES * BINS, f8_init=(math.nan, 0.0, 0.0))


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    period, copies, tokens = (int(settings[name]) for name in ("max_period", "copies", "tokens"))
    rest = (float(settings[name]) for name in ("repetition", "similar", "repeats", "special_from", "special_to"))
    return (float(period), float(copies), float(tokens), float(cycle_spacing(period, copies, tokens)), *rest)


_USERS = "what users of agent frameworks ask for, as penalties did not end such loops"
_MEASURED = "benchmarks/subjects/degeneration.py"

DEGENERATION = DetectorSpec(
    type="degeneration",
    doc="answers that go round in circles, within one reply and across turns",
    inputs={
        "output": "output_token_ids",
        "progress": "progress_count",
        "finish": "finish_reason",
        "logprobs": "top_logprobs",
    },
    settings=(
        SettingSpec("max_period", 128, f"longest cycle; {_USERS}", kind="count", lo=1, hi=512),
        SettingSpec("copies", 3, f"copies of a cycle; {_USERS}", kind="count", lo=2, hi=1024),
        SettingSpec("tokens", 48, f"tokens that a cycle covers; {_USERS}", kind="count", lo=2, hi=1024),
        SettingSpec("repetition", 0.5, f"tolerated share of repeated 3-grams; {_MEASURED}", "ratio", lo=0.0, hi=1.0),
        SettingSpec("similar", 0.8, f"common 3-grams of replies that are alike; {_MEASURED}", "ratio", lo=0.0, hi=1.0),
        SettingSpec(
            "repeats", 2, "replies alike that make a loop: three copies, as of a cycle", kind="count", lo=1, hi=1000
        ),
        SettingSpec(
            "special_from", 0, "first special token id of the model; none by default", kind="count", lo=0, hi=2.0**31
        ),
        SettingSpec("special_to", 0, "first id behind them", kind="count", lo=0, hi=2.0**31),
    ),
    outputs=(
        OutputSpec("cycle_period", "tokens", "length of the cycle, 0 without one", "count", lo=0.0, hi=512.0),
        OutputSpec("cycle_copies", "count", "tokens of the cycle / its length", lo=0.0, hi=float(TAIL)),
        OutputSpec("repetition_ratio", "ratio", "share of 3-grams that are repeated", lo=0.0, hi=1.0),
        OutputSpec("similarity_ratio", "ratio", "share of 3-grams in common with a reply before", lo=0.0, hi=1.0),
        OutputSpec("repeats_count", "count", "replies alike in a row, without progress", "count", lo=0.0),
        OutputSpec("special_count", "tokens", "special tokens that leaked", "count", lo=0.0),
        OutputSpec("peak_ratio", "ratio", "probability of the likeliest candidate", lo=0.0, hi=1.0),
        OutputSpec(
            "is_degenerate", "bool", "a cycle, too much repetition, or a loop over turns", kind="bool", lo=0.0, hi=1.0
        ),
    ),
    kernel=degeneration_kernel,
    layout=_layout,
    config=_config,
    model_bound=True,
    on_applied={"reset_context": "rebase", "rollback_snapshot": "rebase"},
)
"""See the module."""
