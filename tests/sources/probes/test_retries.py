from __future__ import annotations

import threading

from stabilitykit.sources.probes import RetryCounter


def test_share_of_failures():
    """Failures over attempts since the last reading."""
    retries = RetryCounter(least=1)
    swap = retries.watch(lambda succeeds: succeeds)
    assert [swap(s) for s in (True, False, True, True)] == [True, False, True, True]
    assert retries.signals() == {"cas_failure_ratio": 0.25}
    assert retries.signals() == {}


def test_few_attempts_wait():
    """Below the least number nothing is said, and nothing is lost."""
    retries = RetryCounter(least=1000)
    for k in range(999):
        retries.note(k != 0)
    assert retries.signals() == {}
    retries.note(True)
    assert retries.signals() == {"cas_failure_ratio": 0.001}


def test_threads_lose_none():
    """Attempts of many threads are all counted."""
    retries = RetryCounter(least=8000)
    team = [threading.Thread(target=lambda: [retries.note(k % 4 != 0) for k in range(1000)]) for _ in range(8)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    assert retries.signals() == {"cas_failure_ratio": 0.25}


def test_the_least_number_fits_the_capacity():
    """More attempts than can be held are never waited for."""
    retries = RetryCounter(least=10**9, capacity=10)
    for _ in range(20):
        retries.note(False)
    assert retries.signals() == {"cas_failure_ratio": 1.0}
