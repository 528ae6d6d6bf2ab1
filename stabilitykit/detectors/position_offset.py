"""Whether the positions that the model was given fit the tokens that it was given.

After dropped history, a window that slides or a cache that was put together from parts, positions and
tokens can come apart, and attention then looks at the wrong distance.

Inputs
------
positions
    Positions of the prompt's tokens, or of its last ones (``position_ids``).
input_tokens
    Prompt tokens that the server used.
sent_tokens
    Prompt tokens that the host sent; what exceeds ``input_tokens`` was dropped. Where it is unknown,
    a prompt that became shorter tells what was dropped at least.
cached_tokens
    Stands in for ``input_tokens`` when that is unknown: the row then continues the cached prefix.
window
    Context window of this conversation (``context_window_tokens``), optional.
mla
    The model caches one shared latent instead of keys (``is_mla``), optional: no unless it is said.

Settings
--------
mode
    ``absolute`` (default): tokens keep their positions when others before them are dropped.
    ``cache_relative``: positions count inside the cache (StreamingLLM). ``rerotate``: the same, and
    the cached keys are rotated back by the tokens dropped, each time from the last result.
n_sink
    First tokens that are never dropped and keep 0, 1, ... in mode ``absolute``: one declared gap.
max_position
    Positions the model was made for; 163,840 is DeepSeek-V3's. A smaller ``window`` goes first.
dtype
    Precision of the angles and of stored keys: ``f32`` (default), ``f16``, ``bf16``, ``f64``.
rotary_dim, base
    Rotary dimensions (64: the rotary part of DeepSeek's attention; Llama has 128) and base (10,000).

Outputs
-------
offset
    Actual minus expected position (tokens so far, less what was dropped in the relative modes): of the
    last token; with a break inside the row, where it is greatest. Unknown without positions; without a
    token count only breaks inside the row can be seen (and a row that begins below 0).
is_over_window
    A position is not below the window or ``max_position``.
is_compensable
    Positions can be put right: where the last token belongs is inside the window, and keys can be rotated, which a
    shared latent (multi-head latent attention) cannot. Otherwise only a fresh context helps.
phase_error
    Estimate of the greatest phase error in radians, at most pi; a plain number in rules. Warn at 0.01
    (formulas B4.1).

Notes
-----
Phase error. In f32 it grows with the position, not with the number of turns: theta and the product
are each rounded once. The bound used here is 1.0 to 1.6 times the true maximum (tested against
extended precision). Rotating stored keys again adds 2.7e-8 (f32) or 1.8e-3 (bf16) once, and
n ** 0.76 times as much after n rotations; ``rerotate`` from the original key would not accumulate.

A trim or reset by the host starts the count of dropped tokens afresh.

When not to use it
------------------
On hosted APIs and servers that do not show ``position_ids``: nothing is known there but
``is_history_truncated``, which is a signal and needs no detector. ``phase_error`` is about rotary
embeddings; it says nothing of other ones.

References
----------
J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021.
G. Xiao et al., "Efficient Streaming Language Models with Attention Sinks", ICLR 2024.

Examples
--------
On turn 3 the server drops 400 tokens but the positions are those of a fresh prompt:

>>> from stabilitykit.detectors.position_offset import POSITION_OFFSET
>>> from stabilitykit.detectors.trace import trace
>>> sizes = [(1000, 1000), (1500, 1500), (2000, 1600)]
>>> rows = [{"sent_tokens": a, "input_tokens": b, "positions": range(b)} for a, b in sizes]
>>> [out["offset"] for out in trace(POSITION_OFFSET, rows)]
[0.0, 0.0, -400.0]
>>> [out["offset"] for out in trace(POSITION_OFFSET, rows, {"mode": "cache_relative"})]
[0.0, 0.0, 0.0]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.pointers import Block
from stabilitykit.kernels.rope import (
    PRECISIONS,
    REROTATION,
    expected_position,
    greatest_deviation,
    phase_error,
    phase_slope,
)
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["POSITION_OFFSET", "position_offset_kernel"]

MODES = ("absolute", "cache_relative", "rerotate")
ABSOLUTE, RELATIVE, REROTATE = 0.0, 1.0, 2.0
DTYPES = ("f32", "bf16", "f64", "f16")
FARTHEST = 2**53
LAST_INPUT, DROPPED, ROTATIONS = 0, 1, 2  # places in f


@kernel
def note_dropped(f: Block, tokens: float, sent: float) -> int:
    """Learn how many tokens were dropped; gives 0."""
    dropped = float(f[DROPPED])
    if not math.isnan(sent):
        dropped = max(sent - tokens, 0.0)
    elif float(f[LAST_INPUT]) > tokens:
        dropped += float(f[LAST_INPUT]) - tokens
    if dropped > float(f[DROPPED]):
        f[ROTATIONS] = float(f[ROTATIONS]) + 1.0
    f[DROPPED] = dropped
    f[LAST_INPUT] = tokens
    return 0


@kernel
def is_compensable(last: float, limit: float, mla: float) -> float:
    """Tell whether the positions can be put right; ``last`` is where the last token belongs."""
    if mla > 0.0:
        return 0.0
    return math.nan if math.isnan(last) else 1.0 if last < limit else 0.0


@kernel
def position_offset_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Compare the row with the tokens, the largest position with the limits.

    c is ``mode, n_sink, max_position, error per position, last exact position, error of one rotation``;
    f is ``tokens of the last prompt, tokens dropped, rotations of stored keys``.
    """
    count, out = n[io[0]], io[6]
    tokens, cached, window = float(x[io[1]]), float(x[io[3]]), float(x[io[4]])
    if not math.isnan(tokens):
        note_dropped(f, tokens, float(x[io[2]]))
    elif count > 0:
        tokens = cached + count
    base = int(f[DROPPED]) if float(c[0]) == ABSOLUTE else 0
    offset, top, last = math.nan, math.nan, math.nan
    if count > 0 and math.isnan(tokens):
        first = min(max(int(ids[io[0]][0]), 0), FARTHEST)
        offset, top = greatest_deviation(ids[io[0]], count, first, 0, 0)
        last = float(first + count - 1)
    elif count > 0:
        start = max(int(tokens) - count, 0)
        offset, top = greatest_deviation(ids[io[0]], count, start, int(c[1]), base)
        last = float(expected_position(start + count - 1, int(c[1]), base))
    elif tokens >= 1.0:
        top = float(int(tokens) - 1 + base)
        last = top
    limit = float(c[2]) if math.isnan(window) else min(float(c[2]), window)
    rotations = float(f[ROTATIONS]) if float(c[0]) == REROTATE else 0.0
    x[out] = offset
    x[out + 1] = math.nan if math.isnan(top) else 1.0 if top >= limit else 0.0
    x[out + 2] = is_compensable(last, limit, float(x[io[5]]))
    x[out + 3] = math.nan
    if not math.isnan(top):
        x[out + 3] = phase_error(max(top, 0.0), rotations, float(c[3]), float(c[4]), float(c[5]))
    return 0


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    dtype = settings["dtype"]
    return (
        float(MODES.index(settings["mode"])),
        float(settings["n_sink"]),
        float(settings["max_position"]),
        phase_slope(dtype, int(settings["rotary_dim"]), float(settings["base"])),
        2.0 ** PRECISIONS[dtype],
        REROTATION[dtype],
    )


POSITION_OFFSET = DetectorSpec(
    type="position_offset",
    doc="whether the positions that the model was given fit the tokens that it was given",
    inputs={
        "positions": "position_ids",
        "input_tokens": "input_tokens",
        "sent_tokens": "sent_tokens",
        "cached_tokens": "cached_tokens",
        "window": "context_window_tokens",
        "mla": "is_mla",
    },
    settings=(
        SettingSpec(
            "mode", "absolute", "what happens to positions when tokens are dropped", "enum", "enum", values=MODES
        ),
        SettingSpec("n_sink", 0, "first tokens that are never dropped", kind="count", lo=0, hi=65536),
        SettingSpec("max_position", 163840, "positions the model was made for", kind="count", lo=1, hi=2**53),
        SettingSpec("dtype", "f32", "precision of angles and stored keys", "enum", "enum", values=DTYPES),
        SettingSpec("rotary_dim", 64, "rotary dimensions", kind="count", lo=2, hi=65536),
        SettingSpec("base", 10000.0, "base of the rotary frequencies", lo=1.0, hi=1e12),
    ),
    outputs=(
        OutputSpec("offset", "tokens", "actual minus expected position"),
        OutputSpec("is_over_window", "bool", "a position is outside the window", "bool", lo=0.0, hi=1.0),
        OutputSpec("is_compensable", "bool", "positions can be put right", "bool", lo=0.0, hi=1.0),
        OutputSpec("phase_error", "count", "estimated phase error in radians", lo=0.0, hi=math.pi),
    ),
    kernel=position_offset_kernel,
    layout=lambda settings: Layout(f8=3),
    config=_config,
    model_bound=True,
    on_applied={
        "reset_context": "rebase",
        "rollback_snapshot": "rebase",
        "trim_context": "rebase",
        "compensate_positions": "rebase",
    },
)
