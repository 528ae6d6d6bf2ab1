from __future__ import annotations

from collections import deque
from queue import Queue

from stabilitykit.signals import CATALOGUE
from stabilitykit.sources import PRODUCERS
from stabilitykit.sources.probes import (
    ClockProbe,
    KeyHashMonitor,
    OpenRequests,
    RetryCounter,
    Transitions,
    WatchedQueue,
    WatchedRing,
    timed_transition,
)


def test_the_list_of_signals_is_what_the_probes_give():
    """Every signal listed comes out of a probe that saw something, and no other does."""
    spans, inbox, ring = Transitions(), WatchedQueue(Queue(4)), WatchedRing(deque("a", maxlen=4))
    retries, monitor = RetryCounter(least=1), KeyHashMonitor(8, least=1)
    with timed_transition(spans):
        inbox.put(ring.pop())
    inbox.get()
    retries.note(True)
    monitor.add("c-1", 1, "user")
    clocks = ClockProbe(iter(range(3)).__next__)
    clocks.read()
    requests = OpenRequests()
    with requests.open():
        pass
    probes = (spans, inbox, ring, retries, monitor, clocks, requests)
    given = {name for probe in probes for name in probe.signals()}
    assert given == set(PRODUCERS["probes"])
    assert given <= set(CATALOGUE)
