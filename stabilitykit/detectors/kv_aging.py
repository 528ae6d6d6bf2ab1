"""How far a conversation's KV entries are on their way out of the cache.

Without block ids a session knows two things: for how many turns its entries were idle
(``kv_idle_turns``), and on which turns its prompt hit the cache (``kv_hit_ratio`` above 0: an access).
With block ids it also knows which blocks of the past it no longer uses: its pollution.

Inputs
------
idle
    Turns since the entries were last used (``kv_idle_turns``). Where it is unknown, the turns since
    the last hit take its place, and count on from the last value that was given.
hits
    Share of the prompt served from the cache (``kv_hit_ratio``).
blocks
    Ids of the blocks that the turn touched (``block_ids``), optional.

Settings
--------
method
    ``aging_idle`` (default): min(1, idle / window), a pure read. ``recency_age``: the same over the
    detector's own count of turns since the last hit, the source's code with its errors corrected (an
    entry is new on its first turn, not fully aged). ``aging_formula``: the source's formula
    clip(1 - R(t) / R(t - lag), 0, 1), R(t) the hits of the last ``window`` turns; 0 when R came up
    from nothing; without any hit unknown at first and 1 after window + lag turns. ``reuse_decay``: the
    same, but ``recency_age`` without any hit. ``aging_calibrated``: the mean over the known blocks of
    g(idle / accesses), g a quantile map measured on public serving traces; its clock is requests
    served, so it wants block ids and ``scope: replica``.
window, lag
    Turns; 32 is the source's window. On 97-99 % of real blocks it saturates when the clock is the
    server's requests, in one conversation it does not. The lag is at least the window.
slots
    Blocks that are remembered, 10 bytes each; 0: none, ``pollution_ratio`` is unknown.

Outputs
-------
age
    0 just used, 1 as good as gone.
tier
    0 keep below .3, 1 second tier below .7, 2 mark for eviction (the source's table, half-open).
pollution_ratio
    Share of the remembered blocks in tier 2 (blocks of one size, so by bytes too), each aged by
    ``aging_idle`` over the turns with block ids, or by ``aging_calibrated``.
second_tier_ratio
    Share of them in tier 1; what is in neither is to be kept.

Notes
-----
A turn without the inputs that a method needs gives unknown and moves nothing. After the host trimmed,
reset or evicted by itself the memory starts afresh: entries that we dropped ourselves are no symptom.

``aging_calibrated`` against the source's code, area under the ROC curve for "not reused within 500
requests" on the second halves of two public traces (``benchmarks/subjects/aging_map.py``): .880 and
.643 against .519 and .509.

When not to use it
------------------
Where the server has no prefix cache or does not say what it took from it: everything stays unknown. Where blocks differ
in size or only leaves count (a prefix tree), ask ``stabilitykit.sources.block_tracker``, which knows the tree.
``aging_calibrated`` in a single session, without block ids: its map was measured on whole servers.

References
----------
R. Qin et al., "Mooncake: A KVCache-centric disaggregated architecture for LLM serving", FAST 2025
(the traces).

Examples
--------
The cache is hit, then missed for good; with a window of 10 turns the second tier begins 3 turns later:

>>> from stabilitykit.detectors.kv_aging import KV_AGING
>>> from stabilitykit.detectors.trace import trace
>>> turns = trace(KV_AGING, [{"hits": h} for h in [0.0, 0.8, 0.9] + [0.0] * 7], {"window": 10})
>>> [out["tier"] for out in turns]
[0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 2.0]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.age_tiers import LAST_TIER, SECOND_TIER
from stabilitykit.kernels.block_table import touch_block
from stabilitykit.kernels.pointers import Block, offset_u2
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["AGING_MAP", "KV_AGING", "kv_aging_kernel"]

METHODS = ("aging_idle", "recency_age", "aging_formula", "reuse_decay", "aging_calibrated")
IDLE, RECENCY, FORMULA, DECAY, CALIBRATED = 0.0, 1.0, 2.0, 3.0, 4.0
IDLE_TURNS, SINCE_HIT, RECENT, BEFORE, TURNS, CLOCK = range(6)  # places in f
MAP_AT = 4  # place of the map in c

# begin generated: python benchmarks/subjects/aging_map.py --data DIR
# fmt: off
AGING_MAP = (0.0, 39.3, 84.0, 131.0, 182.0, 237.0, 292.0, 356.0, 433.0, 522.0, 625.0, 746.0, 900.0, 1130.0, 1554.0, 2235.0, 4107.0)  # noqa: E501
# fmt: on
# end generated
"""idle / accesses of the k-th sixteenth of known blocks, in requests."""
LAST_KNOT = len(AGING_MAP) - 1


@kernel
def count_hit(f: Block, w: Block, window: int, lag: int, hit: int) -> int:
    """Move both windows of hits by one turn; gives 0."""
    size = window + lag
    t = int(f[TURNS])
    leaving, passing = int(w[(t - window + size) % size]), int(w[(t - lag + size) % size])
    f[RECENT] = float(f[RECENT]) + hit - leaving
    f[BEFORE] = float(f[BEFORE]) + passing - int(w[t % size])
    w[t % size] = hit
    return 0


@kernel
def formula_age(f: Block, fallback: float) -> float:
    """Give 1 - R(t) / R(t - lag), or the fallback when neither window has a hit."""
    recent, before = float(f[RECENT]), float(f[BEFORE])
    if before > 0.0:
        return max(1.0 - recent / before, 0.0)
    return 0.0 if recent > 0.0 else fallback


@kernel
def calibrated_age(c: Block, ratio: float) -> float:
    """Give the quantile of idle / accesses by linear interpolation."""
    if ratio >= float(c[MAP_AT + LAST_KNOT]):
        return 1.0
    k = 0
    while ratio >= float(c[MAP_AT + k + 1]):
        k += 1
    low, high = float(c[MAP_AT + k]), float(c[MAP_AT + k + 1])
    return (k + (ratio - low) / (high - low)) / LAST_KNOT


@kernel
def session_age(f: Block, c: Block, is_idle: bool, is_hit: bool) -> float:
    """Give the age without block ids; NaN when this turn lacks what the method reads."""
    window = float(c[1])
    recency = min(float(f[SINCE_HIT]) / window, 1.0)
    if float(c[0]) == IDLE:
        return min(float(f[IDLE_TURNS]) / window, 1.0) if is_idle or is_hit else math.nan
    if not is_hit or float(c[0]) == CALIBRATED:
        return math.nan
    if float(c[0]) == RECENCY:
        return recency
    if float(c[0]) == DECAY:
        return formula_age(f, recency)
    return formula_age(f, 1.0 if float(f[TURNS]) >= window + float(c[2]) else math.nan)


@kernel
def read_blocks(x: Block, out: int, f: Block, h: Block, w: Block, c: Block) -> int:
    """Write the shares of both tiers, and the mean age when calibrated, of the remembered blocks; gives 0."""
    slots, now, known, middle, high, total = int(c[3]), int(f[CLOCK]), 0, 0, 0, 0.0
    for s in range(slots):
        last = int(h[slots + s])
        if last > 0:
            if float(c[0]) == CALIBRATED:
                age = calibrated_age(c, float(now - last) / float(w[s]))
            else:
                age = min(float(now - last) / float(c[1]), 1.0)
            known += 1
            total += age
            high += 1 if age >= LAST_TIER else 0
            middle += 1 if age >= SECOND_TIER and age < LAST_TIER else 0
    x[out + 2] = float(high) / float(known)
    x[out + 3] = float(middle) / float(known)
    if float(c[0]) == CALIBRATED:
        x[out] = total / float(known)
    return 0


@kernel
def kv_aging_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Count idle turns, hits and blocks, then read the age.

    c is ``method, window, lag, slots, map``; f is ``idle turns, turns since the last hit (both -1 at
    first, so that the first turn is new), hits in the window, in the one before, turns with a known
    hit ratio, turns with block ids``.
    """
    idle, hits, blocks, out = float(x[io[0]]), float(x[io[1]]), n[io[2]], io[3]
    is_idle, is_hit, slots = not math.isnan(idle), not math.isnan(hits), int(c[3])
    uses_windows = float(c[0]) == FORMULA or float(c[0]) == DECAY
    if is_hit:
        is_used = hits > 0.0
        f[SINCE_HIT] = 0.0 if is_used else float(f[SINCE_HIT]) + 1.0
        if not is_idle:
            f[IDLE_TURNS] = 0.0 if is_used else float(f[IDLE_TURNS]) + 1.0
        if uses_windows:
            count_hit(f, w, int(c[1]), int(c[2]), 1 if is_used else 0)
        f[TURNS] = float(f[TURNS]) + 1.0
    if is_idle:
        f[IDLE_TURNS] = idle
    x[out] = session_age(f, c, is_idle, is_hit)
    x[out + 2] = math.nan
    x[out + 3] = math.nan
    if blocks > 0 and slots > 0:
        f[CLOCK] = float(f[CLOCK]) + 1.0
        counts = offset_u2(w, int(c[1]) + int(c[2]) if uses_windows else 0)
        for i in range(blocks):
            touch_block(h, counts, slots, int(ids[io[2]][i]), int(f[CLOCK]))
        read_blocks(x, out, f, h, counts, c)
    age = float(x[out])
    tier = 0.0 if age < SECOND_TIER else 1.0 if age < LAST_TIER else 2.0
    x[out + 1] = math.nan if math.isnan(age) else tier
    return 0


def _lag(settings: Mapping[str, Any]) -> int:
    return max(int(settings["lag"]), int(settings["window"]))


def _layout(settings: Mapping[str, Any]) -> Layout:
    slots = int(settings["slots"])
    ring = int(settings["window"]) + _lag(settings) if settings["method"] in ("aging_formula", "reuse_decay") else 0
    return Layout(f8=6, u4=2 * slots, u2=ring + slots, f8_init=(-1.0, -1.0, 0.0, 0.0, 0.0, 0.0))


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    method = float(METHODS.index(settings["method"]))
    return (method, float(settings["window"]), float(_lag(settings)), float(settings["slots"]), *AGING_MAP)


KV_AGING = DetectorSpec(
    type="kv_aging",
    doc="how far the conversation's KV entries are on their way out of the cache",
    inputs={"idle": "kv_idle_turns", "hits": "kv_hit_ratio", "blocks": "block_ids"},
    settings=(
        SettingSpec(
            "method", "aging_idle", "what makes an entry old", "enum", "enum", values=METHODS, shapes_memory=True
        ),
        SettingSpec(
            "window", 32, "turns after which idle is old; the source's", kind="count", lo=1, hi=1024, shapes_memory=True
        ),
        SettingSpec(
            "lag", 32, "turns between the two windows of hits", kind="count", lo=1, hi=1024, shapes_memory=True
        ),
        SettingSpec("slots", 256, "blocks that are remembered", kind="count", lo=0, hi=65536, shapes_memory=True),
    ),
    outputs=(
        OutputSpec("age", "ratio", "0 just used, 1 as good as gone", lo=0.0, hi=1.0),
        OutputSpec("tier", "count", "0 keep, 1 second tier, 2 mark for eviction", "count", lo=0.0, hi=2.0),
        OutputSpec("pollution_ratio", "ratio", "share of remembered blocks in tier 2", lo=0.0, hi=1.0),
        OutputSpec("second_tier_ratio", "ratio", "share of remembered blocks in tier 1", lo=0.0, hi=1.0),
    ),
    kernel=kv_aging_kernel,
    layout=_layout,
    config=_config,
    model_bound=True,
    on_applied={
        "reset_context": "rebase",
        "rollback_snapshot": "rebase",
        "trim_context": "rebase",
        "evict_kv": "rebase",
    },
)
