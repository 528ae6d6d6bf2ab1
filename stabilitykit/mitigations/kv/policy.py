"""Which KV blocks a prefix cache keeps: policies that know the tree, for a serving layer or a simulator.

A request is a path of blocks from the first of its prompt on. A block is of use only while all that come before it are
cached, so only leaves are evicted. Nothing pinned is evicted, nor what the request being served uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stabilitykit.errors import UsageError
from stabilitykit.kernels.block_ids import signed_id, signed_ids
from stabilitykit.kernels.compile import compile_entry, is_available
from stabilitykit.mitigations.kv import layout
from stabilitykit.mitigations.kv.drive import KINDS, drive, resident
from stabilitykit.mitigations.kv.memory import Content, Memory, Settings
from stabilitykit.mitigations.whole_numbers import whole_numbers

__all__ = ["FRESHNESS", "POLICIES", "Content", "KVPolicy", "PolicyName"]

PolicyName = Literal["survival", "lru", "lru-k", "hybrid", "slru", "fifo", "lfu", "sieve", "belady"]
POLICIES: dict[str, int] = {
    "survival": layout.SURVIVAL, "lru": layout.LRU, "lru-k": layout.LRU_K, "hybrid": layout.HYBRID, "slru": layout.SLRU,
    "fifo": layout.FIFO, "lfu": layout.LFU, "sieve": layout.SIEVE, "belady": layout.BELADY,
}  # fmt: skip
"""Every policy by its name; belady knows the future and is for the simulator alone."""

FRESHNESS: Mapping[str, Content] = {
    "": Content(), "price": Content(1.8, 30.0), "stock": Content(1.5, 60.0), "profile": Content(0.7, 3600.0),
}  # fmt: skip
"""The source's freshness table (formulas A4.2); blocks without a content type are neutral."""

_REMEMBERING = ("survival", "lru-k", "hybrid", "slru")
_MODES = ("uses", "prompts")
_SURVIVAL_GHOSTS = 1 << 16
"""What a small cache needs to learn from: blocks come back after many times its capacity."""


class KVPolicy:
    """A cache of KV blocks that decides which block goes.

    Parameters
    ----------
    policy
        ``survival`` (default): the least expected reuse for the time a block takes up, learned online
        (`survival_index`); it may refuse a block that is worth less than all others. ``lru``, ``lru-k``, ``slru`` (used
        twice outranks used once, as SGLang does), ``hybrid`` (`hybrid_rank`), ``fifo``, ``lfu``, ``sieve``.
    capacity
        Blocks, at least 1.
    ghosts
        Most evicted blocks whose history is remembered. By default twice the capacity for policies that use it, for
        survival at least 65,536, and none for others. In survival one takes up to 400 bytes, so 65,536 up to 26 MB
        (of 16 bit floats, a block of 16 tokens of a model of 32 layers and 4096 dimensions takes 8 MB); memory that no
        ghost needed yet is not touched.
    k
        lru-k and hybrid: which of the last references counts.
    alpha, decay, contents
        hybrid: the share of freshness, how fast it fades (1/s), and what each content type asks for.
    classes
        survival: blocks are told apart by number of uses (``uses``), or by that and what their prompt was like: how
        much of it was new, how often its path had grown (``prompts``). Told block by block, a prompt is new as far as
        blocks that were never seen have been admitted.
    every, prior
        survival: requests between two computations of the index, visits a class borrows from all.
    may_refuse
        Whether a block worth less than all others is refused instead of admitted; by default survival and belady do.
    is_compiled
        False: plain Python, for tests and for hosts without a compiler.

    Raises
    ------
    UsageError
        Settings that cannot be.

    Notes
    -----
    A call with a new time, or without one, begins a new request; calls with the time of the last one continue it, and
    a block counts once a request. A clock that goes backwards stands still. Block ids are whole numbers of 64 bits,
    read as signed.

    Examples
    --------
    >>> from stabilitykit.mitigations.kv import KVPolicy
    >>> cache = KVPolicy("lru", capacity=3)
    >>> cache.request([1, 2, 3]), cache.request([1, 2, 4]), cache.evicted
    (0, 2, (3,))
    >>> cache.pin(4), cache.evict(2), sorted(cache)
    (True, (), [1, 2, 4])
    """

    def __init__(
        self,
        policy: PolicyName = "survival",
        *,
        capacity: int,
        ghosts: int | None = None,
        k: int = 2,
        alpha: float = 0.5,
        decay: float = 0.01,
        contents: Mapping[str, Content] = FRESHNESS,
        classes: Literal["uses", "prompts"] = "prompts",
        every: int = 50,
        prior: float = 100.0,
        may_refuse: bool | None = None,
        is_compiled: bool | None = None,
    ) -> None:
        if policy not in POLICIES or classes not in _MODES:
            raise UsageError(f"policy must be one of {', '.join(POLICIES)}, classes one of {', '.join(_MODES)}")
        sizes = whole_numbers([capacity, k, every, 0 if ghosts is None else ghosts], "capacity, k, every and ghosts")
        if sizes.min() < 0:
            raise UsageError("capacity, k, every and ghosts are whole numbers from 0 on")
        if capacity < 1 or not 1 <= k <= 16 or every < 1 or not prior > 0 or not 0 <= alpha <= 1 or not decay >= 0:
            raise UsageError(
                "capacity, every and prior must be above 0, k in [1, 16], alpha in [0, 1], decay from 0 on"
            )
        names = list(dict.fromkeys(["", *contents]))
        if len(names) > layout.CONTENTS:
            raise UsageError(f"at most {layout.CONTENTS - 1} content types")
        self.policy, self.capacity = policy, capacity
        self.ghosts = _most_ghosts(policy, capacity) if ghosts is None else ghosts
        self._contents = {name: number for number, name in enumerate(names)}
        refuses = policy in ("survival", "belady") if may_refuse is None else may_refuse
        settings = Settings(
            capacity, self.ghosts if policy not in ("lru", "sieve") else 0, POLICIES[policy],
            k if policy in ("lru-k", "hybrid") else 1, refuses, alpha, decay, _MODES.index(classes), every, prior,
            tuple(contents.get(name, Content()) for name in names),
        )  # fmt: skip
        self._memory = Memory.of(settings)
        use = is_available() if is_compiled is None else is_compiled
        self._entry: Callable[[int], int] | None = compile_entry(drive, KINDS) if use else None
        self._last_at: float | None = None
        self._one = _Call(np.zeros(5, np.int64), np.zeros(2, np.int64), np.zeros(1), np.zeros(1), np.zeros(1, np.int64))

    def request(
        self, blocks: Iterable[int], at: float | None = None, content: str = "", is_partial: bool = False
    ) -> int:
        """Serve one request: use what is cached, admit the rest.

        Parameters
        ----------
        blocks
            The path from the first block of the prompt.
        at
            Time in s; needed by hybrid alone.
        content
            Content type of its blocks (hybrid).
        is_partial
            The last block is not full: it seldom comes back (survival).

        Returns
        -------
        int
            Leading blocks that were cached.
        """
        path = signed_ids(blocks)
        self._last_at = None
        when = np.array([self._time(at)])
        traits = np.array([2 * self._number(content) + is_partial], np.int64)
        call = _Call(path, np.array([0, len(path)], np.int64), when, np.zeros(len(path)), traits)
        return int(self._serve(call)[0])

    def run(
        self,
        blocks: NDArray[np.int64],
        starts: NDArray[np.int64],
        at_s: NDArray[np.float64] | None = None,
        traits: NDArray[np.int64] | None = None,
        nexts: NDArray[np.float64] | None = None,
    ) -> NDArray[np.int64]:
        """Serve many requests at once.

        Parameters
        ----------
        blocks
            Their paths one behind the other, int64[n].
        starts
            Where each path begins, int64[requests + 1].
        at_s
            Time of each, float64[requests].
        traits
            2 * number of the content type + 1 if the last block is partial, int64[requests].
        nexts
            belady: which request uses each block next, float64[n]; infinite for none.

        Returns
        -------
        int64[requests]
            Leading blocks of each that were cached.

        Raises
        ------
        UsageError
            Starts that decrease or lie outside, arrays of other lengths, traits of no content type, ids that are no
            whole numbers.
        """
        path, bounds = signed_ids(blocks), whole_numbers(starts, "starts")
        framed = np.concatenate([[0], bounds.ravel(), [len(path)]])
        if bounds.ndim != 1 or not len(bounds) or (framed[1:] < framed[:-1]).any():  # differences could overflow
            raise UsageError("starts are one array that does not decrease, within 0 and the number of blocks")
        count = len(bounds) - 1
        kinds = np.zeros(count, np.int64) if traits is None else whole_numbers(traits, "traits")
        if not ((kinds >= 0) & (kinds < 2 * len(self._contents))).all():
            raise UsageError(f"traits are 2 * content type + is_partial, below {2 * len(self._contents)}")
        when = np.full(count, -np.inf) if at_s is None else np.asarray(at_s, np.float64)
        later = np.zeros(len(path)) if nexts is None else np.asarray(nexts, np.float64)
        if when.shape != (count,) or kinds.shape != (count,) or later.shape != (len(path),):
            raise UsageError("at_s and traits have one number a request, nexts one a block")
        ready = np.ascontiguousarray
        return self._serve(_Call(path, ready(bounds), ready(when), ready(later), ready(kinds)))

    def admit(self, block: int, parent: int | None = None, at: float | None = None, content: str = "") -> bool:
        """Make a block resident behind its parent; False when it is so already, its parent is not, or it was refused.

        What had to go for it is in ``evicted``.
        """
        return bool(self._operate(layout.ADMIT, block, at, parent, 2 * self._number(content)))

    def touch(self, block: int, at: float | None = None) -> bool:
        """Note a use of a block and of all that come before it; False when it is not resident."""
        return bool(self._operate(layout.TOUCH, block, at))

    def evict(self, count: int = 1, at: float | None = None) -> tuple[int, ...]:
        """Evict up to so many blocks; gives their ids in the order in which they went."""
        self._operate(layout.EVICT, 0, at, None, count)
        return self.evicted

    def drop(self, block: int, at: float | None = None) -> bool:
        """Evict this very block; False unless it is a resident leaf that nobody pins."""
        return bool(self._operate(layout.DROP, block, at))

    def pin(self, block: int) -> bool:
        """Keep a block, and so all that come before it, until it is unpinned as often; False when not resident."""
        return bool(self._operate(layout.PIN, block, self._last_at, is_use=False))

    def unpin(self, block: int) -> bool:
        """Take one pin back; False when there is none."""
        return bool(self._operate(layout.UNPIN, block, self._last_at, is_use=False))

    @property
    def evicted(self) -> tuple[int, ...]:
        """Ids that the last call evicted, in order."""
        m = self._memory.m
        return tuple(m[m[layout.OUT] : m[layout.OUT] + m[layout.OUT_N]].tolist())

    @property
    def remembered(self) -> int:
        """Evicted blocks whose history is known."""
        return int(self._memory.m[layout.GHOSTS])

    def idle(self, block: int) -> int | None:
        """Give how many requests ago a resident block was used; None for any other. A pure read."""
        s = resident(self._memory.m, signed_id(block))
        return int(self._memory.m[layout.SERIAL]) - int(self._nodes[s, layout.STAMP]) if s else None

    def parent(self, block: int) -> int | None:
        """Give the block that a resident one stands on; None for a first one."""
        s = resident(self._memory.m, signed_id(block))
        above = int(self._nodes[s, layout.PARENT]) if s else 0
        return int(self._nodes[above, layout.KEY]) if above else None

    def leaves(self) -> tuple[int, ...]:
        """Give the resident blocks that could be evicted now, idle for longest first."""
        nodes = self._nodes
        free = nodes[
            (nodes[:, layout.STATE] == layout.RESIDENT) & (nodes[:, layout.KIDS] == 0) & (nodes[:, layout.PINS] == 0)
        ]
        return tuple(free[np.lexsort((free[:, layout.KEY], free[:, layout.STAMP])), layout.KEY].tolist())

    def __len__(self) -> int:
        """Count the resident blocks."""
        return int(self._memory.m[layout.SIZE])

    def __contains__(self, block: int) -> bool:
        """Tell whether a block is resident; no use of it."""
        return bool(resident(self._memory.m, signed_id(block)))

    def __iter__(self) -> Any:
        """Give the ids of the resident blocks, in no order that means anything."""
        return iter(self._nodes[self._nodes[:, layout.STATE] == layout.RESIDENT, layout.KEY].tolist())

    @property
    def _nodes(self) -> NDArray[np.int64]:
        m = self._memory.m  # nodes that were never used lie behind
        return m[layout.HEADER : layout.HEADER + int(m[layout.UNUSED]) * layout.WORDS].reshape(-1, layout.WORDS)

    def _time(self, when: float | None) -> float:
        return -np.inf if when is None or when != when else float(when)

    def _operate(
        self, op: int, block: int, when: float | None, parent: int | None = None, number: int = 0, is_use: bool = True
    ) -> int:
        is_new = is_use and (when is None or when != self._last_at)
        if is_use:
            self._last_at = when
        call = self._one
        call.ids[:] = (signed_id(block), signed_id(parent or 0), parent is not None, number, is_new)
        call.at_s[0] = self._time(when)
        self._do(op, call)
        return int(call.hits[1])

    def _number(self, content: str) -> int:
        number = self._contents.get(content)
        if number is None:
            raise UsageError(f"content is one of {', '.join(map(repr, self._contents))}")
        return number

    def _serve(self, call: _Call) -> NDArray[np.int64]:
        call.hits[0] = len(call.hits) - 1
        self._do(layout.REQUEST, call)
        return call.hits[1:]

    def _do(self, op: int, call: _Call) -> None:
        self._memory.m[layout.OP] = op
        blocks = (self._memory.m, self._memory.f, *call.blocks)
        if self._entry is None:
            drive(*blocks)
        else:
            self._entry(np.array([b.ctypes.data for b in blocks], np.int64).ctypes.data)


class _Call:
    """What one call reads and writes."""

    def __init__(
        self,
        ids: NDArray[np.int64],
        starts: NDArray[np.int64],
        at_s: NDArray[np.float64],
        nexts: NDArray[np.float64],
        traits: NDArray[np.int64],
    ) -> None:
        self.ids, self.at_s = ids, at_s
        self.hits = np.zeros(len(starts), np.int64)
        longest = int(np.diff(starts).max(initial=0))
        self.blocks = (ids, starts, at_s, nexts, traits, self.hits, np.zeros(max(longest, 1), np.int64))


def _most_ghosts(policy: str, capacity: int) -> int:
    if policy not in _REMEMBERING:
        return 0
    return max(2 * capacity, _SURVIVAL_GHOSTS) if policy == "survival" else 2 * capacity
