"""Every cache policy by its definition: dictionaries, sorting, and a look at all leaves for each eviction.

Written from kv-and-context (Eviction) and formulas A4.2: only leaves go, nothing pinned goes, nothing of the request
being served goes; ties go to the deeper block, then to the lower id.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs

BUCKETS = 48
LOW = [2.0 ** (k / 3.0) - 1.0 for k in range(BUCKETS + 1)]
Counts = dict[tuple[tuple[int, ...], int], int]


@attrs.define(eq=False)
class Visit:
    """From one use of a block to the next."""

    begun: int
    group: tuple[int, ...]
    ended: int | None = None
    reached: int = 0


@attrs.define(eq=False)
class Known:
    """What is known of a block, resident or ghost."""

    block: int
    refs: list[int] = attrs.field(factory=list)
    depth: int = 0
    parent: int | None = None
    pins: int = 0
    born: int = 0
    time: float = -math.inf
    content: tuple[float, float] = (1.0, math.inf)
    following: float = 0.0
    group: tuple[int, ...] = ()
    level: int = 0
    visit: tuple[int, Visit] | None = None

    def back(self, k: int) -> int:
        """Give the K-th last use, -1 for fewer."""
        return self.refs[-k] if len(self.refs) >= k else -1


class NaiveCache:
    """A cache of one of the policies that score."""

    def __init__(
        self,
        policy: str,
        capacity: int,
        ghosts: int,
        k: int = 2,
        alpha: float = 0.5,
        decay: float = 0.01,
        classes: str = "prompts",
        every: int = 50,
        prior: float = 100.0,
        may_refuse: bool = False,
    ) -> None:
        self.policy, self.capacity, self.most_ghosts, self.k = policy, capacity, ghosts, k
        self.alpha, self.decay, self.classes, self.may_refuse = alpha, decay, classes, may_refuse
        self.resident: dict[int, Known] = {}
        self.ghosts: dict[int, Known] = {}  # the one evicted longest ago first
        self.serial, self.now = 0, -math.inf
        self.fresh = self.grown = 0  # of the request: blocks never seen; how often the path so far had grown before
        self.serving: set[int] = set()
        self.evicted: list[int] = []
        self.ranks: dict[int, float] = {}
        self.ranked_at = 0
        self.held_keys: dict[int, float] = {}  # survival: the index of each leaf, renewed every four requests
        self.renewed_at = 0
        ring = 1 << (4 * (capacity + ghosts + 1) - 1).bit_length()
        self.worth = Worth(every, prior, ring) if policy == "survival" else None

    # -- what a host calls

    def request(
        self, path: list[int], at: float, content: tuple[float, float], is_partial: bool, nexts: list[float]
    ) -> int:
        """Serve a path; gives its leading resident blocks."""
        self.tick(at)
        self.evicted, self.serving = [], set()
        hits = 0
        while hits < len(path) and path[hits] in self.resident:
            hits += 1
        self.serving = set(path[:hits])
        seen = 0
        while seen < len(path) and (path[seen] in self.resident or path[seen] in self.ghosts):
            seen += 1
        self.fresh, self.grown = len(path) - seen, 0
        parent, is_open = None, True
        for place, block in enumerate(path):
            partial = is_partial and place == len(path) - 1
            if place < hits:
                self.use(self.resident[block], place, content, partial, nexts[place])
                parent = block
            else:
                is_open = self.enter(block, parent, content, partial, nexts[place], is_open)
                if is_open:
                    parent = block
                    self.serving.add(block)
        self.serving = set()
        self.refresh()
        return hits

    def touch(self, block: int) -> bool:
        """Use a block and its ancestors."""
        self.evicted = []
        here: int | None = block if block in self.resident else None
        while here is not None:
            known = self.resident[here]
            self.use(known, known.depth, known.content, False, 0.0)
            here = known.parent
        self.refresh()
        return block in self.resident

    def admit(self, block: int, parent: int | None, content: tuple[float, float]) -> bool:
        """Make a block resident behind a resident parent."""
        self.evicted = []
        if block in self.resident or (parent is not None and parent not in self.resident):
            return False
        if parent is not None:
            self.touch(parent)
            self.serving = {parent}
        above = None if parent is None else self.resident[parent]
        self.grown = above.level + (len(above.refs) > 1) if above else 0
        self.fresh += block not in self.ghosts
        done = self.enter(block, parent, content, False, 0.0, True)
        self.serving = set()
        self.refresh()
        return done

    def pin(self, block: int, step: int) -> None:
        """Pin a resident block once more, or once less."""
        self.resident[block].pins += step
        self.refresh()

    def evict(self, count: int) -> list[int]:
        """Evict up to so many."""
        self.evicted = []
        self.renew()
        while len(self.evicted) < count and (found := self.victim()) is not None:
            self.drop(found)
        return self.evicted

    def tick(self, at: float) -> None:
        """Begin a request."""
        self.serial += 1
        self.fresh = 0
        self.now = max(self.now, at)
        if self.worth:
            self.worth.tick(self.serial)

    # -- how

    def enter(
        self,
        block: int,
        parent: int | None,
        content: tuple[float, float],
        is_partial: bool,
        following: float,
        is_wanted: bool,
    ) -> bool:
        """Use a block that is not resident; make it so if wanted and worth it."""
        known = self.ghosts.pop(block, None) or Known(block)
        known.parent = parent
        depth = 0 if parent is None else self.resident[parent].depth + 1
        self.use(known, depth, content, is_partial, following)
        if not is_wanted or not self.has_room(known):
            self.bury(known)
            return False
        self.resident[block] = known
        known.born = self.serial
        return True

    def has_room(self, known: Known) -> bool:
        """See to a free place, unless the block is worth less than all others."""
        if len(self.resident) < self.capacity:
            return True
        if self.leaves():
            self.renew()
        victim = self.victim()
        if victim is None or (self.may_refuse and not self.order(victim) < self.order(known)):
            return False
        self.drop(victim)
        return True

    def use(self, known: Known, depth: int, content: tuple[float, float], is_partial: bool, following: float) -> None:
        """Count a use, at most one a request; what is first seen behind a block that was known is a level up."""
        if not known.refs or known.refs[-1] != self.serial:
            self.count(known, depth, content, is_partial, following)
        self.grown = known.level + (len(known.refs) > 1)

    def count(self, known: Known, depth: int, content: tuple[float, float], is_partial: bool, following: float) -> None:
        """Count a use."""
        if not known.refs:
            known.level = self.grown
        known.refs.append(self.serial)
        self.ranks.pop(known.block, None)
        self.held_keys.pop(known.block, None)
        known.depth, known.content, known.time, known.following = depth, content, self.now, following
        if self.worth:
            known.group = group_of(self.classes, len(known.refs), known.level, self.fresh, is_partial)
            self.worth.use(known, self.serial)

    def leaves(self) -> list[Known]:
        """Give what may go."""
        parents = {known.parent for known in self.resident.values()}
        return [
            known
            for block, known in self.resident.items()
            if block not in parents and block not in self.serving and not known.pins
        ]

    def victim(self) -> Known | None:
        """Give what goes next."""
        return min(self.leaves(), key=self.order, default=None)

    def drop(self, known: Known) -> None:
        """Evict a block."""
        del self.resident[known.block]
        self.evicted.append(known.block)
        self.bury(known)
        self.refresh()

    def bury(self, known: Known) -> None:
        """Remember an evicted block, and forget the oldest of too many."""
        self.ghosts[known.block] = known
        if len(self.ghosts) > self.most_ghosts:
            oldest = self.ghosts.pop(next(iter(self.ghosts)))
            if self.worth:
                self.worth.censor(oldest, self.serial)

    def refresh(self) -> None:
        """Compute the index of what has become a leaf; forget that of what is none any more."""
        self.held_keys = {b.block: self.held_keys.get(b.block, self.fresh_key(b)) for b in self.leaves()}

    def renew(self) -> None:
        """Compute the index of every leaf anew, when that is four requests ago."""
        if self.serial - self.renewed_at >= 4:
            self.renewed_at = self.serial
            self.held_keys = {b.block: self.fresh_key(b) for b in self.leaves()}

    def fresh_key(self, known: Known) -> float:
        """Give a block's index as of now."""
        return self.worth.index(known.group, self.serial - known.refs[-1]) if self.worth else 0.0

    # -- orders: the least goes first

    def order(self, known: Known) -> tuple[Any, ...]:
        """Give by what a block is compared."""
        last = known.refs[-1]
        keys: dict[str, Callable[[], tuple[float, float]]] = {
            "fifo": lambda: (known.born, 0.0),
            "lfu": lambda: (len(known.refs), last),
            "lru-k": lambda: (known.back(self.k), last),
            "slru": lambda: (float(len(known.refs) >= 2), last),
            "belady": lambda: (-known.following, last),
            "hybrid": lambda: (self.retention(known), last),
            "survival": lambda: (self.held_keys.get(known.block, self.fresh_key(known)), last),
        }
        return (*keys[self.policy](), -known.depth, known.block)

    def retention(self, known: Known) -> float:
        """Give the hybrid's score."""
        if self.ranked_at != self.serial:  # once a request, before its first eviction; what is used meanwhile is fresh
            self.ranked_at = self.serial
            order = sorted(self.resident.values(), key=lambda b: (b.back(self.k), b.refs[-1], -b.depth, b.block))
            last = len(order) - 1
            self.ranks = {b.block: place / last if last else 1.0 for place, b in enumerate(order)}
        rank = self.ranks.get(known.block, 1.0)
        age = self.now - known.time if self.now > known.time else 0.0
        weight, ttl = known.content
        if age > ttl:
            return -1.0
        return (1.0 - self.alpha) * rank + self.alpha * (0.5 * weight / (1.0 + self.decay * age))


def group_of(classes: str, uses: int, level: int, fresh: int, is_partial: bool) -> tuple[int, ...]:
    """Name the class of a block: the coarse one, and what tells the finer ones of it apart."""
    coarse = (sum(uses >= edge for edge in (2, 3, 4, 8, 32)), int(is_partial))
    return coarse if classes == "uses" else (*coarse, min(level, 2), min((fresh + 1).bit_length() - 1, 7))


class Worth:
    """The survival index: counts of visits by class and bucket of age, and what follows from them."""

    def __init__(self, every: int, prior: float, ring: int) -> None:
        self.every, self.prior, self.ring = every, prior, ring
        self.visits: list[Visit] = []
        self.reused: Counts = {}
        self.risked: Counts = {}
        self.counts: tuple[Counts, Counts] = ({}, {})  # as last looked at
        self.is_known = False
        self.table: dict[tuple[int, ...], list[float]] = {}

    def tick(self, now: int) -> None:
        """Count what has reached each age; compute the index when it is time."""
        for visit in self.visits[-self.ring :]:
            while visit.reached < BUCKETS and visit.begun + LOW[visit.reached] <= now:
                if visit.ended is None or visit.ended >= visit.begun + LOW[visit.reached]:
                    self.note(self.risked, visit.group, visit.reached)
                visit.reached += 1
        if now % self.every == 0:
            self.counts, self.is_known = (dict(self.reused), dict(self.risked)), True
            self.table = {}

    def note(self, counts: Counts, group: tuple[int, ...], bucket: int) -> None:
        """Count in a class, in its coarse one and in all together."""
        for one in {group, group[:2], ()}:
            counts[one, bucket] = counts.get((one, bucket), 0) + 1

    def use(self, known: Known, now: int) -> None:
        """End the visit of a block by a use, begin the next."""
        visit = self.open_visit(known)
        if visit:
            self.note(self.reused, visit.group, max(k for k in range(BUCKETS) if LOW[k] <= now - visit.begun))
            visit.ended = now
        new = Visit(now, known.group)
        self.visits.append(new)
        known.visit = (len(self.visits), new)

    def censor(self, known: Known, now: int) -> None:
        """End the visit of a block that is forgotten."""
        visit = self.open_visit(known)
        if visit:
            visit.ended = now

    def open_visit(self, known: Known) -> Visit | None:
        """Give the block's visit unless it fell out of the ring."""
        if known.visit is None or known.visit[0] <= len(self.visits) - self.ring:
            return None
        return known.visit[1]

    def index(self, group: tuple[int, ...], age: float) -> float:
        """Give what a block is worth; before anything is known, the younger the more."""
        bucket = max(k for k in range(BUCKETS) if LOW[k] <= age)
        if not self.is_known:
            return 1.0 / (1.0 + LOW[bucket])
        if (group, 0) not in self.counts[1]:
            group = group[:2]
        if group not in self.table:
            self.table[group] = best_ratios(self.hazards(group))
        return self.table[group][bucket]

    def hazards(self, group: tuple[int, ...]) -> list[float]:
        """Give the share of visits that end in each bucket, of those that reach it."""
        reused, risked = ([counts.get((group, k), 0) for k in range(BUCKETS)] for counts in self.counts)
        if not group:
            return [(a + 0.05) / (b + 1.0) for a, b in zip(reused, risked, strict=True)]
        above, lent = self.hazards(group[:2] if len(group) > 2 else ()), self.prior
        if len(group) > 2:
            due = sum((b * c for b, c in zip(risked, above, strict=True)), self.prior)
            lent *= (self.prior + sum(reused)) / due
        return [min((a + lent * c) / (b + self.prior), 0.999) for a, b, c in zip(reused, risked, above, strict=True)]


def best_ratios(hazards: list[float]) -> list[float]:
    """Compute the best ratio of reuse to time over all horizons, for each age."""
    found = []
    for first in range(BUCKETS):
        stays, reuse, time, best = 1.0, 0.0, 0.0, 0.0
        for k in range(first, BUCKETS - 1):
            width = (LOW[k + 1] - LOW[k]) * (0.5 if k == first else 1.0)
            time += stays * width * (1.0 - 0.5 * hazards[k])
            reuse += stays * hazards[k]
            stays *= 1.0 - hazards[k]
            best = max(best, reuse / time)
        found.append(best)
    return found


class NaiveList:
    """LRU and SIEVE with a Python list, the stalest block first."""

    def __init__(self, policy: str, capacity: int) -> None:
        self.policy, self.capacity = policy, capacity
        self.order: list[int] = []
        self.parents: dict[int, int | None] = {}
        self.pins: dict[int, int] = {}
        self.marked: set[int] = set()
        self.hand: int | None = None
        self.serving: set[int] = set()
        self.evicted: list[int] = []

    def request(self, path: list[int]) -> int:
        """Serve a path; gives its leading resident blocks."""
        self.evicted = []
        hits = 0
        while hits < len(path) and path[hits] in self.parents:
            hits += 1
        self.serving = set(path[:hits])
        self.use(path[:hits])
        for place in range(hits, len(path)):
            if not self.enter(path[place], path[place - 1] if place else None):
                break
            self.serving.add(path[place])
        self.serving = set()
        return hits

    def use(self, path: list[int]) -> None:
        """Use a path, its tail first."""
        for block in reversed(path):
            if self.policy == "lru":
                self.order.remove(block)
                self.order.append(block)
            else:
                self.marked.add(block)

    def touch(self, block: int) -> bool:
        """Use a block and its ancestors."""
        self.evicted = []
        path: list[int] = []
        here: int | None = block if block in self.parents else None
        while here is not None:
            path.insert(0, here)
            here = self.parents[here]
        self.use(path)
        return bool(path)

    def admit(self, block: int, parent: int | None) -> bool:
        """Make a block resident behind a resident parent."""
        self.evicted = []
        if block in self.parents or (parent is not None and parent not in self.parents):
            return False
        if parent is not None:
            self.touch(parent)
            self.serving = {parent}
        done = self.enter(block, parent)
        self.serving = set()
        return done

    def enter(self, block: int, parent: int | None) -> bool:
        """Make a block resident if there is room."""
        if len(self.parents) >= self.capacity and not self.evict_one():
            return False
        self.parents[block] = parent
        at = self.order.index(parent) if parent is not None and self.policy == "lru" else len(self.order)
        self.order.insert(at, block)
        return True

    def evict(self, count: int) -> list[int]:
        """Evict up to so many."""
        self.evicted = []
        while len(self.evicted) < count and self.evict_one():
            pass
        return self.evicted

    def evict_one(self) -> bool:
        """Evict the next block that may go."""
        held = set(self.parents.values()) | self.serving | {b for b, n in self.pins.items() if n}
        free = [block for block in self.order if block not in held]
        if not free:
            return False
        self.drop(free[0] if self.policy == "lru" else self.under_hand(held))
        return True

    def under_hand(self, held: set[int | None]) -> int:
        """Let SIEVE's hand go on to what goes."""
        at = self.order.index(self.hand) if self.hand is not None else 0
        while True:
            block = self.order[at]
            if block not in held:
                if block not in self.marked:
                    self.hand = block
                    return block
                self.marked.discard(block)
            at = (at + 1) % len(self.order)

    def drop(self, block: int) -> None:
        """Evict this block."""
        if self.hand == block:
            at = self.order.index(block) + 1
            self.hand = self.order[at] if at < len(self.order) else None
        self.order.remove(block)
        self.marked.discard(block)
        del self.parents[block]
        self.evicted.append(block)
