"""The server no longer has what it was told: prompt tokens are missing, or the cache lost the conversation.

A server that cuts the history answers 200 and says nothing: 74,706 tokens were sent, 2,048 used. What
gives it away is the count. Where the host does not know what it sent, a conversation that only grows must not
use fewer prompt tokens than on the turn before.

Inputs
------
sent
    Prompt tokens the host sent (``sent_tokens``), optional.
used
    Prompt tokens the server used (``input_tokens``).
hits
    Share of them served from the prefix cache (``kv_hit_ratio``), optional.

Settings
--------
lost
    Share of the prompt that may be missing: a count of the host's own tokenizer is not exact.
fall
    How far the kept share may fall below its mean before the cache counts as collapsed.
warmup
    Known kept shares before the mean holds.

Outputs
-------
lost_ratio
    1 - used / sent, at least 0; without ``sent`` 1 - used / used on the turn before.
is_lost
    That is above ``lost``.
kept_ratio
    Cached tokens / prompt tokens of the turn before, at most 1. In a conversation that grows it stays near 1 however
    long the new message is, which cannot be said of the hit ratio.
is_collapsed
    The kept share is more than ``fall`` below the mean of the earlier ones.

Notes
-----
After a receipt for a reset, trim, rollback or summary the memory starts afresh, so the host's own cut is no loss; the
same holds for the cache after ``evict_kv``. A turn that is collapsed is not learned, up to 50 in a row. With a server
that never kept more than ``fall``, nothing collapses.

When not to use it
------------------
For agents that send a fresh prompt each time. Where replicas share sessions without affinity, the cache is lost
whenever the replica changes: ``is_collapsed`` then says so, which is true but no news.

References
----------
Formulas A1.1; the counts above are those of an Ollama server in "What this data taught".

Examples
--------
A conversation grows; on the fourth turn the server cuts it:

>>> from stabilitykit.detectors.memory_loss import MEMORY_LOSS
>>> from stabilitykit.detectors.trace import trace
>>> rows = [{"used": u} for u in (200, 420, 650)] + [{"sent": 900, "used": 512}]
>>> [out["is_lost"] for out in trace(MEMORY_LOSS, rows)][1:]
[0.0, 0.0, 1.0]
>>> round(trace(MEMORY_LOSS, rows)[3]["lost_ratio"], 3)
0.431
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.ewma import COUNT, MEAN, ewma_update
from stabilitykit.kernels.pointers import Block
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, Reaction, SettingSpec

__all__ = ["MEMORY_LOSS", "memory_loss_kernel"]

BEFORE, FROZEN = 3, 4
MAX_FREEZE = 50.0
REBASE: dict[str, Reaction] = dict.fromkeys(
    ("reset_context", "trim_context", "rollback_snapshot", "insert_summary", "evict_kv"), "rebase"
)


@kernel
def learn_kept(f: Block, kept: float, is_collapsed: bool, alpha: float) -> int:
    """Take a kept share into the mean unless it collapsed just now; gives 0."""
    f[FROZEN] = float(f[FROZEN]) + 1.0 if is_collapsed else 0.0
    if float(f[FROZEN]) >= MAX_FREEZE:
        f[COUNT] = 0.0
        f[MEAN] = 0.0
        f[FROZEN] = 0.0
    if float(f[FROZEN]) == 0.0:
        ewma_update(f, kept, alpha)
    return 0


@kernel
def memory_loss_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Compare with what was sent, or with the turn before; c is ``lost, fall, warmup, alpha``."""
    sent, used, hits, out = float(x[io[0]]), float(x[io[1]]), float(x[io[2]]), io[3]
    before = float(f[BEFORE])
    whole = before if math.isnan(sent) else sent
    lost = max(1.0 - used / whole, 0.0) if whole > 0.0 and not math.isnan(used) else math.nan
    kept = min(hits * used / before, 1.0) if before > 0.0 else math.nan
    collapsed = math.nan
    if not math.isnan(kept) and float(f[COUNT]) >= float(c[2]):
        collapsed = 1.0 if kept < float(f[MEAN]) - float(c[1]) else 0.0
    x[out] = lost
    x[out + 1] = math.nan if math.isnan(lost) else 1.0 if lost > float(c[0]) else 0.0
    x[out + 2] = kept
    x[out + 3] = collapsed
    if not math.isnan(kept):
        learn_kept(f, kept, collapsed == 1.0, float(c[3]))
    if not math.isnan(used):
        f[BEFORE] = used
    return 0


def _layout(settings: Mapping[str, Any]) -> Layout:
    return Layout(f8=5)


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    return float(settings["lost"]), float(settings["fall"]), float(settings["warmup"]), 0.05


MEMORY_LOSS = DetectorSpec(
    type="memory_loss",
    doc="prompt tokens that the server dropped, and a prefix cache that lost the conversation",
    inputs={"sent": "sent_tokens", "used": "input_tokens", "hits": "kv_hit_ratio"},
    settings=(
        SettingSpec(
            "lost",
            0.1,
            "share that may be missing; servers cut a third of the window or more (the shipped "
            "recording, Ollama: half)",
            "ratio",
            lo=0.0,
            hi=1.0,
        ),
        SettingSpec(
            "fall",
            0.5,
            "tolerated fall of the kept share; in the shipped recording it is 1 and falls "
            "below .2 when the prefix is lost",
            "ratio",
            lo=0.0,
            hi=1.0,
        ),
        SettingSpec(
            "warmup",
            3,
            "known kept shares before the mean holds; three in a row, as A4.4 counts",
            kind="count",
            lo=1,
            hi=10000,
        ),
    ),
    outputs=(
        OutputSpec("lost_ratio", "ratio", "share of the prompt that is missing", lo=0.0, hi=1.0),
        OutputSpec("is_lost", "bool", "more is missing than tolerated", kind="bool", lo=0.0, hi=1.0),
        OutputSpec("kept_ratio", "ratio", "cached tokens / prompt tokens of the turn before", lo=0.0, hi=1.0),
        OutputSpec("is_collapsed", "bool", "the cache lost the conversation", kind="bool", lo=0.0, hi=1.0),
    ),
    kernel=memory_loss_kernel,
    layout=_layout,
    config=_config,
    model_bound=True,
    on_applied=REBASE,
)
"""See the module."""
