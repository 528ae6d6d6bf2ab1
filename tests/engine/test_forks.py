"""Engines survive os.fork under load: no child inherits a held lock or a half-written row."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings

import pytest

from tests.engines import Turn, breaker, play

FORKS, SOAK_FORKS, PATIENCE_S = 30, 300, 20.0
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


def load(engine, stop, name):
    """Evaluate, observe and peek until told to stop."""
    while not stop.is_set():
        engine.evaluate(Turn(session_id=name, itl_ms=90.0))
        engine.observe(replica=name, kv_usage_ratio=0.5)
        engine.peek(Turn(session_id=name, itl_ms=90.0))


def child(engine):
    """Work in the forked process; leave with 0 when all is well."""
    status = 1
    try:
        states = play(engine, [90.0, 90.0, 10.0], session="child") + play(engine, [90.0], session="t0")
        engine.restore(engine.export("child"))
        engine.fork("child", "grandchild")
        status = int(states[:3] != ["healthy", "broken", "broken"])
    finally:
        os._exit(status)


def reap(pid):
    """Wait for a child; kill one that hangs. Gives its exit status, or None."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        threading.Event().wait(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def forks_under_load(count):
    """Fork again and again while three threads use two engines; gives the exit codes."""
    engines = [breaker(), breaker()]
    stop = threading.Event()
    threads = [threading.Thread(target=load, args=(engines[k % 2], stop, f"t{k}")) for k in range(3)]
    for thread in threads:
        thread.start()
    codes = []
    try:
        for k in range(count):
            with warnings.catch_warnings():
                # Python 3.12 warns of every fork of a process with threads: that is what is tested here.
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if pid == 0:
                child(engines[k % 2])
            codes.append(reap(pid))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert play(engines[0], [10.0], session="parent") == ["healthy"]
    return codes


@pytest.mark.capability("issue 2 §6: 30 forks under load, none hangs, every child decides")
def test_forks():
    """Children evaluate, export, restore and fork sessions, and exit 0."""
    assert forks_under_load(FORKS) == [0] * FORKS


@pytest.mark.soak
@pytest.mark.capability("issue 2 §6: 300 forks under load, none hangs, every child decides")
def test_forks_soak():
    """The same, ten times as often."""
    assert forks_under_load(SOAK_FORKS) == [0] * SOAK_FORKS


def test_an_engine_that_is_gone_is_not_held():
    """Dead engines are forgotten, and a fork with none of them works."""
    from stabilitykit.engine.forks import _engines

    engine = breaker()
    assert engine in _engines
    count = len(_engines)
    del engine
    assert len(_engines) < count
