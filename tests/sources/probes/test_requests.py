from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.sources.probes import OpenRequests


def test_nothing_before_the_first_request():
    """A host that has asked nothing knows nothing."""
    requests = OpenRequests()
    requests.open()
    assert requests.signals() == {}


def test_a_request_that_fails_is_no_longer_open():
    """Whatever ends it, an exception too, nothing waits afterwards."""
    now = 0.0
    requests = OpenRequests(clock=lambda: now)

    def fail():
        with requests.open():
            raise TimeoutError

    with pytest.raises(TimeoutError):
        fail()
    now = 3.0
    assert requests.signals() == {"pending_requests": 0, "oldest_wait_ms": 0.0}


@given(st.lists(st.tuples(st.sampled_from(["open", "token", "end", "wait"]), st.integers(0, 4)), max_size=60))
def test_against_a_plain_list(steps):
    """Whatever the order, the oldest of those without a token counts, and all that are open."""
    now = 0.0
    requests = OpenRequests(clock=lambda: now)
    held = [requests.open() for _ in range(5)]
    since: dict[int, float] = {}
    silent: set[int] = set()
    was_used = False
    for what, which in steps:
        if what == "wait":
            now += which
        elif what == "open" and which not in since:
            held[which].__enter__()
            since[which], was_used = now, True
            silent.add(which)
        elif what == "token" and which in since:
            held[which].first_token()
            silent.discard(which)
        elif what == "end" and which in since:
            held[which].__exit__(None, None, None)
            del since[which]
            silent.discard(which)
        oldest = max((now - since[k] for k in silent), default=0.0)
        expected = {"pending_requests": len(since), "oldest_wait_ms": 1000.0 * oldest}
        assert requests.signals() == (expected if was_used else {})
