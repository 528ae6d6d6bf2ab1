"""Host probes: what no server exports because it happens in the host's own code.

A probe stands around the thing that it watches and notes one number an event, at most about a microsecond
each; no thread, no file. ``signals()`` gives what was seen since the last reading, by the names of the
catalogue, ready for ``Turn(**...)`` or ``engine.observe(**...)``. What was not seen is not in it.

=====================  ========================================================  =========================
probe                  watches                                                   signals
=====================  ========================================================  =========================
``timed_transition``   a block or function that changes the host's state         ``state_transition_us``
``WatchedQueue``       ``queue.Queue``, ``asyncio.Queue``                        ``queue_full_per_s``
                                                                                 ``queue_recv_ms``
                                                                                 ``queue_occupancy``
``WatchedRing``        a ring buffer (``collections.deque`` with ``maxlen``)     ``ringbuf_pop_us``
``RetryCounter``       a loop that tries compare-and-swap until it succeeds      ``cas_failure_ratio``
``KeyHashMonitor``     the keys of a hash table                                  ``hash_keys_count``
                                                                                 ``hash_buckets_count``
                                                                                 ``hash_occupied_count``
``OpenRequests``       the requests that the host has sent and not seen the end  ``pending_requests``
                       of                                                        ``oldest_wait_ms``
``ClockProbe``         two clocks: of processes, machines, or kinds              ``clock_samples``
=====================  ========================================================  =========================

Each may be used from many threads where what it watches may. One reader reads it.

Examples
--------
>>> from queue import Queue
>>> from stabilitykit.sources.probes import WatchedQueue
>>> inbox = WatchedQueue(Queue(maxsize=2))
>>> for item in "ab":
...     inbox.put(item)
>>> inbox.signals()["queue_full_per_s"]
0.0
"""

from stabilitykit.sources.probes.clocks import ClockProbe, answer_clock, ask_clock
from stabilitykit.sources.probes.keys import KeyHashMonitor, SipHasher, pack_key
from stabilitykit.sources.probes.queues import WatchedQueue
from stabilitykit.sources.probes.rate import RecentRate
from stabilitykit.sources.probes.requests import OpenRequest, OpenRequests
from stabilitykit.sources.probes.retries import RetryCounter
from stabilitykit.sources.probes.ring import WatchedRing
from stabilitykit.sources.probes.transitions import Transitions, timed_transition

__all__ = [
    "ClockProbe",
    "KeyHashMonitor",
    "OpenRequest",
    "OpenRequests",
    "RecentRate",
    "RetryCounter",
    "SipHasher",
    "Transitions",
    "WatchedQueue",
    "WatchedRing",
    "answer_clock",
    "ask_clock",
    "pack_key",
    "timed_transition",
]
