"""The seven pre-crash signals as one registry: how many are up within each other's lead time.

A sign is *up* from the sample on which it passes its limit until its lead time is over: it says that a crash
may follow within so many milliseconds. One is a warning. Two distinct ones that are up at once are taken for
the crash itself: what they look at has no common cause but trouble.

===  ============  =========================================  ===========  =======
bit  sign          up when                                    limit        lead
===  ============  =========================================  ===========  =======
0    transition    3 of 100 transitions above p99.9           4.2 us       142 ms
1    hash          3 windows in a row with z above            6            142 ms
2    ring          a pop from the ring buffer took longer     3.7 us       89 ms
3    full          puts refused a second, at least            17 /s        142 ms
4    cas           share of failed compare-and-swaps above    0.04 %       142 ms
5    recv          time to receive, at least                  2.1 ms       142 ms
6    slots         a queue found full, in so few of its       0.383        142 ms
                   slots (share of the greatest entropy)
===  ============  =========================================  ===========  =======

The source names two of the seven with their lead times, ring (89 ms) and cas (142 ms); the other five stand
in for what it does not name, with the greatest lead, and the combination is formulas B1.4's.

Inputs
------
transition ... recv
    The signals, each optional: what is unknown is neither up nor does it take anything down.
time
    When they were measured. Without it signs are only compared within one sample.

It belongs to the replica in spirit. Its default inputs hold one signal of a session, ``state_transition_us``,
and so it would live there; the pack ``runtime`` gives it a replica's signal instead.

When not to use it
------------------
With samples that are further apart than the lead times, two signs meet only within one.

References
----------
.. [1] formulas B1.4 (registry and combination), B1.1 to B1.3 (limits).

Examples
--------
A slow pop at 0 ms; failing compare-and-swaps 60 ms later; 100 ms after the first the pop is no sign any more.

>>> from stabilitykit.detectors.precrash import PRECRASH
>>> from stabilitykit.detectors.trace import trace
>>> calm = {"ring": 0.5, "cas": 0.0}
>>> rows = [{**calm, "time": 0.0, "ring": 9.0}, {**calm, "time": 0.06, "cas": 0.01}, {**calm, "time": 0.1}]
>>> [[round(value, 1) for value in out.values()] for out in trace(PRECRASH, rows)]
[[1.0, 4.0, 89.0], [2.0, 20.0, 29.0], [1.0, 16.0, 102.0]]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs

from stabilitykit.detectors.hash_collisions import hash_z
from stabilitykit.kernels import kernel
from stabilitykit.kernels.guard import GUARD
from stabilitykit.kernels.histogram import first_bin
from stabilitykit.kernels.pointers import Block
from stabilitykit.kernels.slot_entropy import slot_entropy, slot_fill, slot_items
from stabilitykit.kernels.spike import BURST, OCTAVES, SLICE_BITS, SPIKE_WORDS, spike_bound, spike_take
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["PRECRASH", "SIGNS", "Sign", "precrash_kernel"]


@attrs.frozen
class Sign:
    """One pre-crash signal: its name, limit and lead time.

    Parameters
    ----------
    name
        Settings are called ``<name>_limit`` and ``<name>_lead``.
    limit, unit
        What must be exceeded (``full``, ``recv``: reached; ``slots``: undercut).
    lead_ms
        How long before the crash it is seen at the latest.
    doc
        What is compared, and whose number it is.
    """

    name: str
    limit: float
    unit: str
    lead_ms: float
    doc: str


SIGNS: tuple[Sign, ...] = (
    Sign("transition", 4.2, "us", 142.0, "floor of the transition spikes; the source's (B1.1)"),
    Sign("hash", 6.0, "count", 142.0, "deviations of the collisions above chance (B1.2)"),
    Sign("ring", 3.7, "us", 89.0, "time of a pop from the ring buffer; the source's (B1.4)"),
    Sign("full", 17.0, "/s", 142.0, "refused puts; the source's (B1.3)"),
    Sign("cas", 0.0004, "ratio", 142.0, "failed compare-and-swaps; the source's (B1.4)"),
    Sign("recv", 2.1, "ms", 142.0, "time to receive an item; the source's (B1.3)"),
    Sign("slots", 0.383, "ratio", 142.0, "normalised slot entropy, 2.3 bits of 6 (B1.3)"),
)
"""The registry; its order is that of the bits of ``active_mask``."""
COUNT = len(SIGNS)
T, KEYS, BUCKETS, OCCUPIED, RING, FULL, CAS, RECV, SLOTS, TIME = range(10)
"""The inputs, in order."""
STREAK = COUNT
"""Place of the number of windows with too many collisions in a row, behind the seven times."""
BURST_AT_LEAST = 3
WINDOWS_AT_LEAST = 3
LEAST_ITEMS = 64.0
FULL_FROM = 0.5
"""Mean slot from which a narrow spread is that of a full queue."""
NEVER = -1e300
"""A time before all others."""


@kernel
def verdict(value: float, is_up: bool) -> float:
    """Give 1 or 0, unknown for an unknown value."""
    return math.nan if math.isnan(value) else (1.0 if is_up else 0.0)


@kernel
def transition_sign(h: Block, w: Block, value: float, c: Block) -> float:
    """Say whether transitions spike in a burst, and learn this one."""
    if math.isnan(value):
        return math.nan
    spike = 1 if value > spike_bound(h, float(c[2 * COUNT + 1]), float(c[0])) else 0
    burst = spike_take(h, w, value, spike, int(c[2 * COUNT]), float(c[2 * COUNT + 1]))
    return 1.0 if burst >= BURST_AT_LEAST else 0.0


@kernel
def hash_sign(f: Block, z: float, limit: float) -> float:
    """Say whether the third window in a row has too many collisions."""
    if math.isnan(z):
        return math.nan
    f[STREAK] = float(f[STREAK]) + 1.0 if z > limit * (1.0 + GUARD) else 0.0
    return 1.0 if float(f[STREAK]) >= WINDOWS_AT_LEAST else 0.0


@kernel
def slots_sign(counts: Block, slots: int, limit: float) -> float:
    """Say whether a queue is always found (nearly) full."""
    if slots < 2:
        return math.nan
    items = slot_items(counts, slots)
    if math.isnan(items) or items < LEAST_ITEMS:
        return math.nan
    most = math.log(float(slots)) / math.log(2.0)
    narrow = slot_entropy(counts, slots, items) < limit * most
    return 1.0 if narrow and slot_fill(counts, slots, items) > FULL_FROM else 0.0


@kernel
def sign_of(
    k: int, x: Block, f: Block, h: Block, w: Block, c: Block, io: Block, ids: Block, n: Block
) -> float:  # fmt: skip
    """Say whether sign k is up on this sample: 1, 0 or unknown."""
    limit = float(c[k])
    if k == 0:
        return transition_sign(h, w, float(x[io[T]]), c)
    if k == 1:
        return hash_sign(f, hash_z(float(x[io[KEYS]]), float(x[io[BUCKETS]]), float(x[io[OCCUPIED]])), limit)
    if k == 6:
        return slots_sign(ids[io[SLOTS]], int(n[io[SLOTS]]), limit)
    value = float(x[io[k + 2]])  # ring, full, cas, recv stand in the order of their inputs
    return verdict(value, value >= limit if k == 3 or k == 5 else value > limit)


@kernel
def precrash_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Take one sample; c is seven limits, seven leads in s, first bin and start of the top octave."""
    now = float(x[io[TIME]])
    out = io[TIME + 1]
    known = 0
    active = 0
    mask = 0
    left = math.nan
    for k in range(COUNT):
        up = sign_of(k, x, f, h, w, c, io, ids, n)
        lead = float(c[COUNT + k])
        if not math.isnan(up):
            known += 1
        age = math.nan
        if math.isnan(now):
            age = 0.0 if up == 1.0 else math.nan
        else:
            if up == 1.0:
                f[k] = now
            age = abs(now - float(f[k]))
        if age <= lead:
            active += 1
            mask += 1 << k
            if not math.isnan(now) and not left <= lead - age:
                left = lead - age
    x[out] = float(active) if known + active > 0 else math.nan
    x[out + 1] = float(mask) if known + active > 0 else math.nan
    x[out + 2] = left * 1000.0
    return 0


def _layout(settings: Mapping[str, Any]) -> Layout:
    return Layout(f8=COUNT + 1, u4=SPIKE_WORDS, u2=BURST, f8_init=(*[NEVER] * COUNT, 0.0))


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    lowest = 2.0 ** math.floor(math.log2(settings["lowest"]))
    return (
        *(float(settings[f"{sign.name}_limit"]) for sign in SIGNS),
        *(float(settings[f"{sign.name}_lead"]) / 1000.0 for sign in SIGNS),
        first_bin(lowest, SLICE_BITS),
        lowest * 2.0 ** (OCTAVES - 1),
    )


PRECRASH = DetectorSpec(
    type="precrash",
    doc="how many of the seven pre-crash signals are up within their lead times",
    inputs={
        "transition": "state_transition_us",
        "keys": "hash_keys_count",
        "buckets": "hash_buckets_count",
        "occupied": "hash_occupied_count",
        "ring": "ringbuf_pop_us",
        "full": "queue_full_per_s",
        "cas": "cas_failure_ratio",
        "recv": "queue_recv_ms",
        "occupancy": "queue_occupancy",
        "time": "timestamp_s",
    },
    settings=(
        *(SettingSpec(f"{s.name}_limit", s.limit, s.doc, s.unit, lo=1e-9, hi=1e9) for s in SIGNS),
        *(SettingSpec(f"{s.name}_lead", s.lead_ms, "how long it stays up (B1.4)", "ms", lo=0.0, hi=1e9) for s in SIGNS),
        SettingSpec(
            "lowest",
            0.01,
            "where the 24 octaves of the transitions' histogram begin, as in transition_spike",
            "us",
            lo=1e-9,
            hi=1e6,
            shapes_memory=True,
        ),
    ),
    outputs=(
        OutputSpec("active_count", "count", "distinct signs that are up", "count", lo=0.0, hi=float(COUNT)),
        OutputSpec("active_mask", "count", "which: the sum of 2^bit", "count", lo=0.0, hi=2.0**COUNT - 1.0),
        OutputSpec("time_left_ms", "ms", "until the first lead time of those is over", lo=0.0),
    ),
    kernel=precrash_kernel,
    layout=_layout,
    config=_config,
)
"""See the module."""
