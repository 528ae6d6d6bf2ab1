"""KV blocks of whole requests: how old each is, which could go, how much of a session is dead weight.

For hosts that know block ids: their own prefix tree, a cache-aware router, a trace. (vLLM exports no block ids; a host
can make them as vLLM does, from the tokens it sends: `prefix_blocks`.) A request is a path: each block follows the one
before it, so the blocks form a tree, and only leaves can be evicted.

Ages, tiers and the clock are those of `kv_aging` (formulas A2.2): one declared clock, a creation is no reuse, a new
block is new whatever the time, reading an age changes nothing.
"""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from operator import index
from typing import Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from stabilitykit.detectors.kv_aging import AGING_MAP
from stabilitykit.errors import UsageError
from stabilitykit.kernels.age_tiers import LAST_TIER, SECOND_TIER
from stabilitykit.kernels.block_ids import signed_id, signed_ids

__all__ = ["BlockReport", "BlockTracker", "prefix_blocks"]

Method = Literal["calibrated", "idle", "formula"]
METHODS: tuple[Method, ...] = ("calibrated", "idle", "formula")
_KNOTS = np.linspace(0.0, 1.0, len(AGING_MAP))


@attrs.frozen(eq=False)
class BlockReport:
    """What one request did.

    Parameters
    ----------
    block_ids
        Its blocks for ``Turn(block_ids=...)``, i64[n].
    hit_blocks
        Leading blocks that were known: what a prefix cache that never forgets would have served.
    pollution_ratio
        Share, by bytes, of the session's leaves that are marked for eviction; NaN while no leaf has an age.
    tier_bytes
        Bytes of the session's leaves in each tier: keep (an unknown age keeps), second tier, mark for eviction.
    """

    block_ids: NDArray[np.int64]
    hit_blocks: int
    pollution_ratio: float
    tier_bytes: tuple[float, float, float]


@attrs.define
class _Block:
    """One block: who used it last, when, how often, and how many blocks follow it."""

    session: Hashable
    parent: int | None
    size: float
    created: float
    last: float
    accesses: int = 1
    children: int = 0
    reuses: deque[float] = attrs.field(factory=deque)


class BlockTracker:
    """Remembers when each block was used, at most ``capacity`` of them; the leaf idle for longest makes room.

    Parameters
    ----------
    method
        ``calibrated`` (default): quantile of idle time / accesses, a map measured on public serving traces whose clock
        is requests. ``idle``: min(1, idle / window). ``formula``: the source's 1 - R(t) / R(t - lag), R the reuses of
        ``window``; unknown without any while younger than window + lag, then 1.
    window, lag
        In units of the clock; the lag is at least the window.
    clock
        ``requests``: counted here. ``seconds``: the host gives ``at``.
    capacity
        Blocks that are remembered.

    Attributes
    ----------
    backwards
        Requests refused because the clock ran backwards.

    Raises
    ------
    UsageError
        Settings that cannot be.

    Notes
    -----
    Block ids are whole numbers of 64 bits, read as signed, as `KVPolicy` has them.

    Examples
    --------
    Two chats share a first block; after ten requests of the second the tail of the first has gone stale:

    >>> from stabilitykit.sources.block_tracker import BlockTracker
    >>> tracker = BlockTracker(method="idle", window=10)
    >>> tracker.touch("a", [1, 2, 3]).hit_blocks
    0
    >>> [tracker.touch("b", [1, 7]).hit_blocks for _ in range(7)][-2:]
    [2, 2]
    >>> tracker.pollution("a"), tracker.pollution("b"), list(tracker.marked())
    (1.0, 0.0, [3])
    """

    def __init__(
        self,
        method: Method = "calibrated",
        window: float = 32,
        lag: float = 32,
        clock: Literal["requests", "seconds"] = "requests",
        capacity: int = 1 << 20,
    ) -> None:
        if method not in METHODS or clock not in ("requests", "seconds"):
            raise UsageError(f"method must be one of {', '.join(METHODS)}, clock requests or seconds")
        if not 0 < window < math.inf or not 0 <= lag < math.inf or not 1 <= capacity < math.inf:
            raise UsageError("window and capacity must be above 0, lag from 0 on, all finite")
        if method == "calibrated" and clock != "requests":
            raise UsageError("the map of `calibrated` was measured in requests")
        self.backwards = 0
        self._method, self._clock = method, clock
        self._window, self._lag, self._capacity = window, max(lag, window), capacity
        self._now = -math.inf if clock == "seconds" else 0.0
        self._blocks: OrderedDict[int, _Block] = OrderedDict()  # idle for longest first, so always a leaf
        self._owned: dict[Hashable, set[int]] = {}

    def touch(
        self,
        session: Hashable,
        block_ids: Iterable[int],
        at: float | None = None,
        sizes: Sequence[float] | None = None,
    ) -> BlockReport | None:
        """Note one request.

        Parameters
        ----------
        session
            Whose blocks they are from now on.
        block_ids
            The path from the first block of the prompt; doubles count once.
        at
            Time in s, when ``clock`` is ``seconds``.
        sizes
            Bytes of each block, from 0 on; without them all count alike.

        Returns
        -------
        BlockReport or None
            None when the clock ran backwards, or told no finite time: nothing was noted.

        Raises
        ------
        UsageError
            Ids that are no whole numbers, or other than one size a block. Nothing was noted.
        """
        ids = signed_ids(block_ids)
        given: list[int] = ids.tolist()
        if sizes is not None and (len(sizes) != len(given) or not all(0 <= size < math.inf for size in sizes)):
            raise UsageError("sizes are one finite number from 0 on for each block")
        weight = dict(zip(given, sizes, strict=True)) if sizes is not None else {}
        now = self._now + 1.0 if self._clock == "requests" else float(math.nan if at is None else at)
        if not (math.isfinite(now) and now >= self._now):
            self.backwards += 1
            return None
        self._now = now
        path = list(dict.fromkeys(given))
        hits = next((i for i, b in enumerate(path) if b not in self._blocks), len(path))
        for parent, block in pairwise([None, *path]):
            assert block is not None
            self._note(session, block, parent, weight.get(block, 1.0))
        for block in reversed(path):
            if block in self._blocks:
                self._blocks.move_to_end(block)
        while len(self._blocks) > self._capacity:
            self._forget(next(iter(self._blocks)))
        return BlockReport(ids, hits, self.pollution(session), self._tiers(session))

    def _note(self, session: Hashable, block: int, parent: int | None, size: float) -> None:
        """Create a block, or count one access."""
        known = self._blocks.get(block)
        if known is None:
            self._blocks[block] = known = _Block(session, parent, size, self._now, self._now)
            if parent is not None:
                self._blocks[parent].children += 1
        elif known.last != self._now:
            known.accesses += 1
            known.last = self._now
            if self._method == "formula":
                known.reuses.append(self._now)
                while known.reuses[0] <= self._now - self._window - self._lag:
                    known.reuses.popleft()
        self._disown(known.session, block)
        known.session = session
        self._owned.setdefault(session, set()).add(block)

    def _disown(self, session: Hashable, block: int) -> None:
        mine = self._owned.get(session, set())
        mine.discard(block)
        if not mine:
            self._owned.pop(session, None)

    def _forget(self, block: int) -> None:
        """Drop a block."""
        gone = self._blocks.pop(block)
        self._disown(gone.session, block)
        parent = None if gone.parent is None else self._blocks.get(gone.parent)
        if parent is not None:  # counted from 0 again where the host evicted it before its children
            parent.children = max(parent.children - 1, 0)

    def evict(self, block: int) -> None:
        """Forget a block that the host evicted; unknown ones are no error."""
        block = signed_id(block)
        if block in self._blocks:
            self._forget(block)

    def age(self, block: int) -> float:
        """Give a block's age in [0, 1], NaN for an unknown block or an unknown age; a pure read."""
        known = self._blocks.get(signed_id(block))
        if known is None:
            return math.nan
        idle = self._now - known.last
        if self._method == "idle":
            return min(idle / self._window, 1.0)
        if self._method == "calibrated":
            return float(np.interp(idle / known.accesses, AGING_MAP, _KNOTS))
        now, before = self._reuses(known, self._now), self._reuses(known, self._now - self._lag)
        if before > 0:
            return max(1.0 - now / before, 0.0)
        is_young = self._now - known.created < self._window + self._lag
        return 0.0 if now > 0 else math.nan if is_young else 1.0

    def _reuses(self, block: _Block, until: float) -> int:
        """Count the reuses in (until - window, until]."""
        return sum(until - self._window < t <= until for t in block.reuses)

    def tier(self, block: int) -> int:
        """Give 0 keep, 1 second tier, 2 mark for eviction; an unknown age keeps."""
        age = self.age(block)
        return 2 if age >= LAST_TIER else 1 if age >= SECOND_TIER else 0

    def marked(self) -> Iterator[int]:
        """Give the leaves that are marked for eviction, idle for longest first."""
        return (b for b, known in self._blocks.items() if known.children == 0 and self.tier(b) == 2)

    def pollution(self, session: Hashable) -> float:
        """Give the share, by bytes, of a session's leaves that are marked for eviction; NaN without an aged leaf."""
        aged = any(not math.isnan(self.age(b)) for b in self._leaves(session))
        tiers = self._tiers(session)
        return tiers[2] / sum(tiers) if aged and sum(tiers) > 0 else math.nan

    def _leaves(self, session: Hashable) -> Iterator[int]:
        return (b for b in self._owned.get(session, ()) if self._blocks[b].children == 0)

    def _tiers(self, session: Hashable) -> tuple[float, float, float]:
        found = [0.0, 0.0, 0.0]
        for block in self._leaves(session):
            found[self.tier(block)] += self._blocks[block].size
        return (found[0], found[1], found[2])

    def __len__(self) -> int:
        """Count the blocks that are remembered."""
        return len(self._blocks)


def prefix_blocks(token_ids: Iterable[int], block_tokens: int = 16) -> list[int]:
    """Make block ids from a prompt's tokens: each full block is named by all tokens up to its end, as vLLM does.

    Parameters
    ----------
    token_ids
        The prompt as the server's tokenizer sees it.
    block_tokens
        Tokens of a block; 16 is vLLM's. What does not fill a block has none (only full blocks hit, formulas A2.5).

    Returns
    -------
    list of int
        Signed 64-bit ids. Equal ids mean equal prefixes, but for a collision of a 64-bit hash.

    Raises
    ------
    UsageError
        Tokens that are no whole numbers, or blocks without tokens.
    """
    if index(block_tokens) < 1:
        raise UsageError("block_tokens is a whole number from 1 on")
    tokens = signed_ids(token_ids)
    chain = hashlib.blake2b(digest_size=8)
    named = []
    for end in range(block_tokens, len(tokens) + 1, block_tokens):
        chain.update(tokens[end - block_tokens : end].tobytes())
        named.append(int.from_bytes(chain.digest(), "little", signed=True))
    return named
