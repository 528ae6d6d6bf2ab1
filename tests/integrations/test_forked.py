"""Workers forked while threads of the parent are inside."""

from __future__ import annotations

import os
import signal
import threading
import weakref

import pytest

from stabilitykit.integrations.gate import Gate
from stabilitykit.integrations.sampling import DiagnosticSampler
from tests.integrations.decisions import asking, slow

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def code_of_child(work):
    """Give the exit code of a forked child that does some work, 1 second at most; negative: a signal."""
    child = os.fork()
    if not child:
        signal.alarm(1)
        code = 3
        try:
            code = int(work())
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("name", ["gate", "sampler"])
def test_a_lock_that_was_held(name):
    """Whoever held it in the parent, the child is served."""
    gate, sampler = Gate(), DiagnosticSampler(key=b"secret", rate=1.0)
    ask = {"gate": lambda: gate.state("c-1") == "", "sampler": lambda: sampler.is_picked("c-1", 1)}[name]
    held, done = threading.Event(), threading.Event()

    def hold():
        with (gate if name == "gate" else sampler)._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert code_of_child(ask) == 1
    finally:
        done.set()
        thread.join()


def test_requests_of_the_parent(tmp_path):
    """They fill no limit in the child, which would never see them leave; what decisions asked for holds there too."""
    gate = Gate()
    gate.note(slow(asking(tmp_path, "{throttle: {max_concurrency: 1}}")))
    assert gate.enter("c-1").retry_after_s is None
    assert code_of_child(lambda: gate.enter("c-1").retry_after_s is None) == 1
    assert code_of_child(lambda: (gate.enter("c-1"), gate.enter("c-1"))[1].retry_after_s == 1.0) == 1
    assert gate.enter("c-1").retry_after_s == 1.0


def test_a_gate_that_is_gone():
    """Nothing is kept alive for the sake of a fork."""
    gate = Gate()
    gone = weakref.ref(gate)
    del gate
    assert gone() is None
