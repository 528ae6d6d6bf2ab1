"""What a probe adds to the operation that it watches: ns an event, and the ratio to the bare operation."""

from __future__ import annotations

import asyncio
from collections import deque
from queue import Queue

from benchmarks.measure import Figure, significant, times
from stabilitykit.sources.probes import (
    KeyHashMonitor,
    RetryCounter,
    Transitions,
    WatchedQueue,
    WatchedRing,
    timed_transition,
)

EVENTS = 2000
TARGET_US = 1.0
KEY = bytes(range(16))


def transition():
    spans = Transitions()

    def step():
        return None

    watched = timed_transition(spans)(step)
    return step, watched


def block():
    spans = Transitions()

    def bare():
        return None

    def timed():
        with timed_transition(spans):
            return None

    return bare, timed


def queue_pair(make):
    bare, watched = make(), WatchedQueue(make())

    def with_bare():
        bare.put_nowait(1)
        bare.get_nowait()

    def with_watched():
        watched.put_nowait(1)
        watched.get_nowait()

    return with_bare, with_watched


def ring():
    bare, watched = deque([1], maxlen=1024), WatchedRing(deque([1], maxlen=1024))

    def with_bare():
        bare.popleft()
        bare.append(1)

    def with_watched():
        watched.pop()
        watched.append(1)

    return with_bare, with_watched


def retries():
    cell = [0]

    def swap():
        cell[0] += 1
        return True

    return swap, RetryCounter().watch(swap)


def keys():
    monitor = KeyHashMonitor(4096, key=KEY)
    table: dict[tuple[str, int, str], None] = {}
    numbers = iter(range(10**9))

    def bare():
        table[("conversation-0001", next(numbers) % 4096, "assistant")] = None

    def watched():
        turn = next(numbers) % 4096
        monitor.add("conversation-0001", turn, "assistant")
        table[("conversation-0001", turn, "assistant")] = None

    return bare, watched


PROBES = {
    "timed_transition, decorator": (transition, 1),
    "timed_transition, with": (block, 1),
    "WatchedQueue of queue.Queue, put + get": (lambda: queue_pair(lambda: Queue(1024)), 2),
    "WatchedQueue of asyncio.Queue, put + get": (lambda: queue_pair(lambda: asyncio.Queue(1024)), 2),
    "WatchedRing, pop + append": (ring, 1),
    "RetryCounter": (retries, 1),
    "KeyHashMonitor, SipHash-2-4": (keys, 1),
}
"""A probe: the bare operation and the watched one, and how many events an operation is."""


def repeat(fn):
    def batch():
        for _ in range(EVENTS):
            fn()

    return batch


def run() -> list[Figure]:
    figures = []
    for name, (make, events) in PROBES.items():
        # The best of some rounds: a neighbour on this machine can only add.
        pair = [repeat(fn) for fn in make()]
        bare, watched = (min(side) for side in zip(*(times(pair, rounds=1) for _ in range(25)), strict=True))
        added_us = (watched - bare) / EVENTS / events / 1000
        slug = name.replace(",", "").replace(" ", "_").replace("+", "and").replace(".", "_").lower()
        note = f"{significant(watched / bare)} times the bare operation of {significant(bare / EVENTS)} ns"
        figures.append(Figure(f"probe_{slug}", f"{name}: added us an event", significant(added_us), TARGET_US, note))
    return figures
