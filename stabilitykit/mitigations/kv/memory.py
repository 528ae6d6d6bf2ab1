"""The two blocks of memory of a policy, laid out for its capacity."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from stabilitykit.mitigations.kv import layout as at

__all__ = ["Content", "Memory", "Settings"]


@attrs.frozen
class Content:
    """How fresh a type of content must be: its weight in [0.5, 2], and after how many seconds it has expired."""

    weight: float = attrs.field(default=1.0, validator=[attrs.validators.ge(0.5), attrs.validators.le(2.0)])
    ttl_s: float = attrs.field(default=float("inf"), validator=attrs.validators.ge(0.0))


@attrs.frozen
class Settings:
    """What a policy is made with; see `KVPolicy`."""

    capacity: int
    ghosts: int
    policy: int
    k: int
    bypass: bool
    alpha: float
    decay: float
    mode: int
    every: int
    prior: float
    contents: tuple[Content, ...]


@attrs.frozen(eq=False)
class Memory:
    """int64[...] and float64[...], as `layout` describes them."""

    m: NDArray[np.int64]
    f: NDArray[np.float64]

    @classmethod
    def of(cls, settings: Settings) -> Memory:
        """Lay out empty memory."""
        nodes = settings.capacity + settings.ghosts + 1  # one more: the block that asks to be admitted
        is_scored = settings.policy not in (at.LRU, at.SIEVE)
        marks = (nodes + 2) * at.MARK_WORDS if settings.policy != at.LRU else 0
        table = 1 << (4 * settings.capacity + 2 * settings.ghosts + 3).bit_length()  # at most half full
        ring = 1 << (4 * nodes - 1).bit_length() if settings.policy == at.SURVIVAL else 0
        is_ranked = settings.policy == at.HYBRID
        sizes = {
            at.MARKS: marks, at.TABLE: table, at.HEAP: settings.capacity if is_scored else 0, at.OUT: settings.capacity,
            at.ORDER: nodes + 2 if is_ranked else 0, at.MOVED: nodes + 2 if is_ranked else 0, at.VISITS: 3 * ring,
            at.UNTIL: at.BUCKETS,
        }  # fmt: skip
        start = at.HEADER + (nodes + 2) * at.WORDS
        m = np.zeros(start + sum(sizes.values()), np.int64)
        for word, size in sizes.items():
            m[word], start = start, start + size
        m[at.MASK], m[at.RING] = table - 1, ring
        _fill_header(m, settings, nodes)
        return cls(m, _floats(m, settings, nodes if is_scored else 0))


def _fill_header(m: NDArray[np.int64], settings: Settings, nodes: int) -> None:
    m[at.CAPACITY], m[at.MOST_GHOSTS], m[at.POLICY] = settings.capacity, settings.ghosts, settings.policy
    m[at.K], m[at.BYPASS], m[at.MODE], m[at.EVERY] = settings.k, settings.bypass, settings.mode, settings.every
    slots = m[at.HEADER : at.HEADER + (nodes + 2) * at.WORDS].reshape(nodes + 2, at.WORDS)
    m[at.UNUSED], m[at.GHOST_LIST] = 1, nodes + 1  # a page of memory that no node needed yet costs nothing
    slots[nodes + 1, [at.PREV, at.NEXT]] = nodes + 1


def _floats(m: NDArray[np.int64], settings: Settings, nodes: int) -> NDArray[np.float64]:
    rows = at.BUCKETS * (at.CLASSES + 1) if settings.policy == at.SURVIVAL else 0
    sizes: dict[Any, int] = {
        at.FLOATS: (nodes + 2) * (at.REFERENCES + settings.k), at.REUSED: rows, at.RISKED: rows, at.INDEX: rows,
        at.LOWS: at.BUCKETS + 1, at.HAZARDS: 6 * at.BUCKETS if rows else 0,
    }  # fmt: skip
    start = at.SETTINGS
    f = np.zeros(start + sum(sizes.values()))
    for word, size in sizes.items():
        m[word], start = start, start + size
    f[at.NOW], f[at.ALPHA], f[at.DECAY], f[at.PRIOR] = -np.inf, settings.alpha, settings.decay, settings.prior
    for k, content in enumerate(settings.contents):
        f[at.WEIGHTS + k], f[at.TTLS + k] = content.weight, content.ttl_s
    low = 2.0 ** (np.arange(at.BUCKETS + 1) / 3.0) - 1.0
    f[m[at.LOWS] : m[at.LOWS] + at.BUCKETS + 1] = low
    if rows:  # before anything is known: the older, the less worth
        first = m[at.INDEX] + at.BUCKETS * at.COARSE * at.FINE
        f[first : first + at.BUCKETS * at.COARSE] = np.tile(1.0 / (1.0 + low[:-1]), at.COARSE)
    return f
