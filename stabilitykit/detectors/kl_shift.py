"""How far the next-token distribution moved since the previous turn.

A conversation that keeps its thread answers from similar distributions; when a server truncates,
mixes up or loses context, the model is sure of other tokens than before.

The top-k list of an API gives an estimate and a guaranteed lower bound; log-probabilities of the
whole vocabulary give the divergence itself. Take the positions with care: the last token of a turn is
normally the end mark, with p near 1 on every turn; the first tokens of the answer say more.

Inputs
------
token_ids, logprobs
    Top-k candidates and their log-probabilities (``top_token_ids``, ``top_logprobs``) at one position, in
    any order, or at several, ``k_max`` entries each. -9999 and -inf mean "not computed" and fill up a list
    that is shorter; doubles are summed.
full_logprobs, prev_logprobs
    The whole vocabulary, this turn and the previous one (``logprobs``, ``prev_logprobs``), at one position
    or at several in a row.

Settings
--------
vocab_size
    Tokens in the vocabulary; 129,280 is the DeepSeek-V3 family's. ``top_k`` spreads over it what a
    list leaves open; the full modes need exactly so many log-probabilities.
direction
    ``forward``: KL(current || previous), which punishes mass where the previous turn had none and is
    what the source's ``kl_div(p.log(), q)`` computes. ``reverse``. ``js``: Jensen-Shannon, symmetric,
    at most ln 2, the sober choice for top-k lists.
mode
    ``top_k``; ``full``: keeps one distribution (4 bytes a token) unless the host brings the previous
    one along; ``full_pair``: the host brings both, nothing is kept.
k_max
    Entries of a list that are used, the first ones; 20 is the most that OpenAI-style APIs give. With several
    positions, also how far their lists are apart.
positions
    Positions of the answer that count, from the first; each is compared with the same position of the last
    turn that had it. The memory grows with it.
end_token
    Id of the model's end mark: a position where it has more than half of the probability does not count.
    -1: not told.

Outputs
-------
All are means over the positions that were compared.

kl_nats
    The divergence: an estimate in ``top_k``, exact to about 1e-5 in the full modes (float32 sums).
lower_nats
    What it is at least, whatever the tokens outside the lists do; the same number in the full modes.
coverage_ratio
    Probability that the lists cover, of the worse side. Below 0.5 the estimate is a guess.
entropy_delta_nats
    Entropy now minus then; unlike a divergence it can be negative. Exact to about 1e-5 in the full modes; in
    ``top_k`` each entropy is the greatest that its list allows, what is open being spread evenly.
overlap_ratio
    Tokens common to both lists / length of the longer; 1 in the full modes.

Notes
-----
Unknown on the first turn, and with an empty, missing or impossible list (sum above 1.001, a NaN, ids
and values of different number); that also leaves the memory of the position alone, so a later turn is
compared with the last good one. A token without probability on the reference side counts as 1e-10, mass
renormalised, so results are finite. After a trim or a reset by the host the detector starts afresh:
that turn is unknown, the next is compared with it.

Thresholds belong to rules, profiles to packs. The source's 1.2 (technical) and 2.1 (creative) nats are 2.5
and 1.9 standard deviations above its own means of .82 and 1.47 on full distributions (formulas A2.1): the
packs ``technical`` and ``creative`` hold them.

When not to use it
------------------
On servers that give no log-probabilities, or lists that cover less than half (``coverage_ratio``).
Where a grammar or schema forces the tokens the divergence speaks of the format, not of the context.

References
----------
T. Cover, J. Thomas, "Elements of Information Theory", 2nd ed., section 2.8 (data processing).
J. Lin, "Divergence measures based on the Shannon entropy", IEEE Trans. Inf. Theory 37 (1991).

Examples
--------
The same list twice, then another token on top. What the lists prove is less than what they suggest:

>>> from math import log
>>> from stabilitykit.detectors.kl_shift import KL_SHIFT
>>> from stabilitykit.detectors.trace import trace
>>> calm = {"token_ids": [11, 22, 33], "logprobs": [log(0.8), log(0.1), log(0.05)]}
>>> moved = {"token_ids": [44, 11, 22], "logprobs": [log(0.7), log(0.2), log(0.05)]}
>>> turns = trace(KL_SHIFT, [calm, calm, moved])
>>> [round(out["kl_nats"], 2) for out in turns]
[nan, 0.0, 5.65]
>>> [round(out["lower_nats"], 2) for out in turns]
[nan, 0.0, 1.2]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.divergence import (
    FLOOR,
    FORWARD,
    MASS_TOLERANCE,
    REVERSE,
    copy_f4,
    full_mixture,
    full_moments,
    is_end,
    keep_top,
    top_divergence,
    top_mass,
)
from stabilitykit.kernels.pointers import Block, offset_f4, offset_f8, offset_i8, offset_u4
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["KL_SHIFT", "kl_shift_kernel"]

_DIRECTIONS = ("forward", "reverse", "js")
_MODES = ("top_k", "full", "full_pair")
_NAN = math.nan
_LN2 = math.log(2.0)
OUTPUTS = 5


@kernel
def kl_shift_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Compare each position with the last turn that had a distribution there, then keep this one; mean over positions.

    c is ``vocab_size, direction, mode, k_max, positions, end_token``.
    """
    out, compared = io[4], 0
    for k in range(OUTPUTS):
        x[out + k] = 0.0
    for i in range(int(c[4])):
        if c[2] == 0.0:
            compared += _shift_top(i, x, f, h, c, io, arr, ids, n)
        else:
            compared += _shift_full(i, x, f, v, c, io, arr, n)
    for k in range(OUTPUTS):
        x[out + k] = float(x[out + k]) / compared if compared > 0 else _NAN
    return 0


@kernel
def _shift_top(i: int, x: Block, f: Block, h: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block) -> int:
    """Compare two top-k lists: two halves of the memory, written in turns; gives 1 where there were two."""
    k_max = int(c[3])
    given = min(n[io[0]] - i * k_max, k_max)
    if given <= 0 or n[io[0]] != n[io[1]]:
        return 0
    tokens, logprobs = offset_i8(ids[io[0]], i * k_max), offset_f4(arr[io[1]], i * k_max)
    mass = top_mass(tokens, logprobs, given)
    if mass != mass or is_end(tokens, logprobs, given, int(c[5])):
        return 0
    fi, hi = offset_f8(f, i * (3 + 2 * k_max)), offset_u4(h, i * (3 + 2 * k_max))
    new = 1 if hi[0] == 1 else 0  # half of the newest list, counted from 1; 0: none
    now, old, is_known = 3 + new * k_max, 3 + (1 - new) * k_max, hi[0] != 0
    count = keep_top(tokens, logprobs, given, fi, hi, now)
    if is_known:
        top_divergence(
            fi, hi, now, count, mass, old, int(hi[2 - new]), float(fi[2 - new]), float(c[0]), int(c[1]), x, io[4]
        )
    fi[1 + new] = mass
    hi[1 + new] = count
    hi[0] = 1 + new
    return 1 if is_known else 0


@kernel
def _shift_full(i: int, x: Block, f: Block, v: Block, c: Block, io: Block, arr: Block, n: Block) -> int:
    """Compare two whole distributions; v keeps the previous one, f its moments and whether it is there."""
    size, direction, out, at = int(c[0]), int(c[1]), io[4], 3 * i
    if n[io[2]] % size != 0 or n[io[2]] < (i + 1) * size:
        return 0
    is_given = n[io[3]] % size == 0 and n[io[3]] >= (i + 1) * size
    is_kept = c[2] == 1.0 and f[at + 2] != 0.0
    now, kept = offset_f4(arr[io[2]], i * size), offset_f4(v, i * size if c[2] == 1.0 else 0)
    old = offset_f4(arr[io[3]], i * size) if is_given else kept if is_kept else now
    mass, weighted, cross, zeros = full_moments(now, old if direction == FORWARD else now, size)
    if not abs(mass - 1.0) <= MASS_TOLERANCE or is_likely(now, size, int(c[5])):
        return 0
    compared = 0
    if is_given or is_kept:
        mass_old, weighted_old = float(f[at]), float(f[at + 1])
        if is_given or direction != FORWARD:
            mass_old, weighted_old, back, zeros_now = full_moments(old, now if direction == REVERSE else old, size)
            if direction == REVERSE:
                cross, zeros = back, zeros_now
        if abs(mass_old - 1.0) <= MASS_TOLERANCE:
            compared = 1
            entropy, entropy_old = math.log(mass) - weighted / mass, math.log(mass_old) - weighted_old / mass_old
            if direction == FORWARD:
                kl = cross / mass - math.log(mass) + math.log(mass_old + FLOOR * zeros)
            elif direction == REVERSE:
                kl = cross / mass_old - math.log(mass_old) + math.log(mass + FLOOR * zeros)
            else:
                kl = min(full_mixture(now, old, mass, mass_old, size) - 0.5 * (entropy + entropy_old), _LN2)
            x[out] = float(x[out]) + max(kl, 0.0)
            x[out + 1] = float(x[out + 1]) + max(kl, 0.0)
            x[out + 2] = float(x[out + 2]) + min(mass, mass_old, 1.0)
            x[out + 3] = float(x[out + 3]) + entropy - entropy_old
            x[out + 4] = float(x[out + 4]) + 1.0
    if c[2] == 1.0:
        f[at], f[at + 1], f[at + 2] = mass, weighted, 1.0
        copy_f4(now, kept, size)
    return compared


@kernel
def is_likely(logprobs: Block, size: int, token: int) -> bool:
    """Tell whether a token has more than half of the probability; a token outside the vocabulary has not."""
    return token >= 0 and token < size and float(logprobs[token]) > -_LN2


def _layout(settings: Mapping[str, Any]) -> Layout:
    """For each position two lists of 12 bytes an entry, or one whole distribution, or nothing."""
    places = int(settings["positions"])
    if settings["mode"] == "top_k":
        size = places * (3 + 2 * int(settings["k_max"]))
        return Layout(f8=size, u4=size)
    vec = places * int(settings["vocab_size"])
    return Layout(f8=3 * places, vec=vec) if settings["mode"] == "full" else Layout(f8=3 * places)


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    return (
        float(settings["vocab_size"]),
        float(_DIRECTIONS.index(settings["direction"])),
        float(_MODES.index(settings["mode"])),
        float(settings["k_max"]),
        float(settings["positions"]),
        float(settings["end_token"]),
    )


KL_SHIFT = DetectorSpec(
    type="kl_shift",
    doc="how far the next-token distribution moved since the previous turn",
    inputs={
        "token_ids": "top_token_ids",
        "logprobs": "top_logprobs",
        "full_logprobs": "logprobs",
        "prev_logprobs": "prev_logprobs",
    },
    settings=(
        SettingSpec("vocab_size", 129280, "tokens in the vocabulary", "count", "count", 2, 2**21, shapes_memory=True),
        SettingSpec("direction", "forward", "which divergence", "enum", "enum", values=_DIRECTIONS),
        SettingSpec("mode", "top_k", "which inputs are compared", "enum", "enum", values=_MODES, shapes_memory=True),
        SettingSpec("k_max", 20, "entries of a top-k list that are used", "count", "count", 1, 64, shapes_memory=True),
        SettingSpec("positions", 1, "positions that the arrays hold", "count", "count", 1, 16, shapes_memory=True),
        SettingSpec("end_token", -1, "id of the end mark, whose positions do not count; -1: none", lo=-1, hi=2.0**32),
    ),
    outputs=(
        OutputSpec("kl_nats", "nats", "the divergence, in top_k an estimate", lo=0.0),
        OutputSpec("lower_nats", "nats", "guaranteed lower bound of the divergence", lo=0.0),
        OutputSpec("coverage_ratio", "ratio", "probability that the lists cover, the worse side", lo=0.0, hi=1.0),
        OutputSpec("entropy_delta_nats", "nats", "entropy of this turn minus entropy of the previous one"),
        OutputSpec("overlap_ratio", "ratio", "share of the longer list that is in both", lo=0.0, hi=1.0),
    ),
    kernel=kl_shift_kernel,
    layout=_layout,
    config=_config,
    model_bound=True,
    on_applied={"reset_context": "rebase", "rollback_snapshot": "rebase", "trim_context": "rebase"},
)
