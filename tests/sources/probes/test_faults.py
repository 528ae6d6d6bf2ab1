"""Faults that are caused for real: the probe sees them, the engine is told, the rule fires; and not in health."""

from __future__ import annotations

import asyncio
import hashlib
import queue
import random
import threading
import time
import zlib
from collections import deque
from contextlib import contextmanager

import pytest

from stabilitykit import Engine, Turn
from stabilitykit.sources.probes import (
    KeyHashMonitor,
    RetryCounter,
    Transitions,
    WatchedQueue,
    WatchedRing,
    timed_transition,
)

WORK = bytes(1 << 16)
MINE = {"transition_floor": "20 ms", "ring_pop": "20 ms"}
"""Limits for a shared machine, on which any step may be put aside for some ms; the pack's own are a quiet one's."""
STALL_S = 0.06


def runtime() -> Engine:
    """Give the engine of the `runtime` pack."""
    return Engine.load("runtime", params=MINE)


def fired(decisions) -> set[str]:
    """Name the rules that fired on any of some decisions."""
    return {rule for decision in decisions for rule in decision.fired}


def work() -> None:
    """Keep a core busy for about 100 us, without the interpreter's lock."""
    hashlib.sha256(WORK).digest()


@contextmanager
def held_by_another_thread(lock):
    """Have another thread hold a lock for a while from now on."""
    is_held, nobody = threading.Event(), threading.Event()

    def hold():
        with lock:
            is_held.set()
            nobody.wait(STALL_S)

    thread = threading.Thread(target=hold)
    thread.start()
    assert is_held.wait(10)
    yield
    thread.join()


def sample(engine, *probes, **more):
    """Give the engine a sample of some probes, now."""
    seen = {name: value for probe in probes for name, value in probe.signals().items()}
    return engine.observe(timestamp_s=time.monotonic(), **seen, **more)


# a bounded queue


@pytest.mark.capability(
    "issue 3 §1: a bounded queue that a faster producer fills, seen by WatchedQueue, fires queue rules"
)
def test_a_faster_producer_fills_the_queue():
    """The consumer takes one item of eight: puts are refused, the queue is always found full, the replica breaks."""
    inbox, engine = WatchedQueue(queue.Queue(maxsize=64)), runtime()
    wanted, taken = threading.Semaphore(0), threading.Semaphore(0)

    def consume():
        while wanted.acquire() and inbox.get() is not None:
            taken.release()

    consumer = threading.Thread(target=consume)
    consumer.start()
    decisions = []
    for _ in range(3):
        refused = 0
        while refused < 700:
            for _ in range(8):
                try:
                    inbox.put_nowait(b"item")
                except queue.Full:
                    refused += 1
            wanted.release()
            taken.acquire()
        decisions.append(sample(engine, inbox))
    inbox.put(None)
    wanted.release(100)
    consumer.join()
    assert {"queue-full", "queue-always-full", "precrash-signs"} <= fired(decisions)
    assert decisions[-1].state == "broken"


def test_a_queue_that_keeps_up_is_left_alone():
    """Bursts that are taken out again refuse nothing, spread over the slots and are received at once."""
    inbox, engine, rng = WatchedQueue(queue.Queue(maxsize=64)), runtime(), random.Random(1)
    decisions = []
    for _ in range(12):
        for _ in range(20):
            burst = rng.randrange(60)
            for item in range(burst):
                inbox.put_nowait(item)
            for _ in range(burst):
                inbox.get_nowait()
        decisions.append(sample(engine, inbox))
    assert [d.matches for d in decisions] == [()] * 12
    assert inbox.signals() == {"queue_full_per_s": 0.0}


def test_an_asyncio_queue_is_filled():
    """The same with tasks: a consumer that works in a thread, a producer that does not wait for it."""
    engine = runtime()

    async def run():
        inbox = WatchedQueue(asyncio.Queue(maxsize=16))

        async def consumer():
            while await inbox.get() is not None:
                await asyncio.to_thread(work)

        task = asyncio.create_task(consumer())
        decisions = []
        for _ in range(2):
            for _ in range(100):
                try:
                    inbox.put_nowait(b"item")
                except asyncio.QueueFull:
                    await inbox.put(b"late")
            decisions.append(sample(engine, inbox))
        await inbox.put(None)
        await task
        return decisions

    assert {"queue-full", "queue-always-full"} <= fired(asyncio.run(run()))


@pytest.mark.capability("issue 3 §1: receiving from a queue whose lock is held, seen by WatchedQueue, fires a rule")
def test_receivers_that_wait_for_the_queues_lock():
    """Somebody holds the queue's mutex while items are there: in the median receiving takes milliseconds."""
    plain: queue.Queue[int] = queue.Queue(maxsize=64)
    inbox, engine = WatchedQueue(plain), runtime()
    decisions = []
    for item in range(6):
        inbox.put(item)
        with held_by_another_thread(plain.mutex):
            assert inbox.get() == item
        decisions.append(sample(engine, inbox))
    assert "queue-receive-slow" in fired(decisions)


# transitions and the ring


class Conversation:
    """A state under a lock, as hosts have it."""

    def __init__(self, into: Transitions):
        self.lock, self.state = threading.Lock(), 0
        self.step = timed_transition(into)(self._step)

    def _step(self):
        with self.lock:
            self.state += 1


@pytest.mark.capability("issue 3 §1: transitions stalled by a held lock, seen by timed_transition, fire the burst rule")
def test_a_transition_is_stalled():
    """2,100 transitions in health say nothing; three that wait for a lock held elsewhere are a burst."""
    spans, engine = Transitions(), runtime()
    conversation = Conversation(spans)
    healthy = []
    for _ in range(2100):
        conversation.step()
        healthy.append(engine.evaluate(Turn(session_id="c", **spans.signals())))
    assert fired(healthy) == set()
    stalled = []
    for _ in range(3):
        with held_by_another_thread(conversation.lock):
            conversation.step()
        stalled.append(engine.evaluate(Turn(session_id="c", **spans.signals())))
    assert [d.fired for d in stalled] == [(), (), ("transition-spikes",)]
    assert conversation.state == 2103
    assert stalled[-1].state == "warning"


class LockedRing:
    """A ring buffer that many threads share."""

    def __init__(self):
        self.lock, self.items = threading.Lock(), deque[int](maxlen=256)

    def append(self, item):
        """Put an item, over the oldest one when full."""
        with self.lock:
            self.items.append(item)

    def popleft(self):
        """Take the oldest item."""
        with self.lock:
            return self.items.popleft()


@pytest.mark.capability("issue 3 §1: a ring buffer stalled by a held lock, seen by WatchedRing, fires its rule")
def test_a_ring_is_stalled():
    """Pops that wait for the ring's lock are called in the third sample, and pops that do not are not."""
    plain, engine = LockedRing(), runtime()
    ring = WatchedRing(plain)
    healthy, stalled = [], []
    for _ in range(6):
        for item in range(200):
            ring.append(item)
            ring.pop()
        healthy.append(sample(engine, ring))
    for _ in range(3):
        ring.append(1)
        with held_by_another_thread(plain.lock):
            ring.pop()
        stalled.append(sample(engine, ring))
    assert fired(healthy) == set()
    assert stalled[0].fired == ("precrash-sign",)
    assert "ring-pop-slow" in stalled[2].fired


# compare-and-swap


class Versioned:
    """A value that is replaced only by who has read its latest version."""

    def __init__(self):
        self.lock, self.version, self.value = threading.Lock(), 0, 0

    def swap(self, expected, value):
        """Replace the value if nobody else did meanwhile."""
        with self.lock:
            if self.version != expected:
                return False
            self.version, self.value = self.version + 1, value
            return True


def add_ones(cell, swap, rounds, together):
    """Add one in every round, after all have read the same version."""
    for _ in range(rounds):
        version, value = cell.version, cell.value
        together.wait()
        swap(version, value + 1)
        together.wait()


@pytest.mark.capability("issue 3 §1: a contended compare-and-swap of threads, seen by RetryCounter, fires its rule")
@pytest.mark.parametrize(("threads", "wanted"), [(4, {"cas-failing", "precrash-sign"}), (1, set())])
def test_a_contended_cell(threads, wanted):
    """Of four threads that read together one succeeds; one alone always does. No success is lost."""
    cell, retries, engine = Versioned(), RetryCounter(least=100), runtime()
    swap, together = retries.watch(cell.swap), threading.Barrier(threads)
    decisions = []
    for _ in range(3):
        team = [threading.Thread(target=add_ones, args=(cell, swap, 100, together)) for _ in range(threads)]
        for thread in team:
            thread.start()
        for thread in team:
            thread.join()
        decisions.append(sample(engine, retries))
    assert cell.value == cell.version == 300
    assert fired(decisions) == wanted


# a hash table


class Table:
    """A hash table with chains, and a hash that everybody can compute."""

    def __init__(self, buckets, hash_of):
        self.chains: list[list[bytes]] = [[] for _ in range(buckets)]
        self.hash_of = hash_of

    def insert(self, key):
        """Put a key into the chain of its bucket."""
        chain = self.chains[self.hash_of(key) % len(self.chains)]
        if key not in chain:
            chain.append(key)


def adversarial(count, buckets, into):
    """Find keys that crc32 puts into few buckets."""
    found, number = list[bytes](), 0
    while len(found) < count:
        key = b"session-%d" % number
        if zlib.crc32(key) % buckets < into:
            found.append(key)
        number += 1
    return found


@pytest.mark.capability(
    "issue 3 §1: keys made to collide, seen by KeyHashMonitor, fire; under SipHash they do not collide"
)
@pytest.mark.parametrize(
    ("keys", "is_sip", "rules"),
    [
        (adversarial(600, 512, 8), False, {"hash-collisions", "hash-flooded", "precrash-sign"}),
        (adversarial(600, 512, 8), True, set()),
        ([b"session-%d" % k for k in range(600)], False, set()),
    ],
    ids=["attacked", "attacked, keyed", "usual"],
)
def test_a_flooded_table(keys, is_sip, rules):
    """Of 600 keys that crc32 puts into 8 of 512 buckets the table has long chains, and the rules say so."""
    monitor = KeyHashMonitor(512, key=bytes(range(16)), hash=None if is_sip else zlib.crc32)
    engine, decisions = runtime(), []
    for number in range(3):
        table = Table(512, monitor.add_bytes)
        for key in keys[number * 200 : number * 200 + 200]:
            table.insert(key)
        assert (max(map(len, table.chains)) > 15) is bool(rules)
        decisions.append(sample(engine, monitor))
    assert fired(decisions) == rules
