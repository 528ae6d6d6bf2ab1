from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from stabilitykit import Engine
from stabilitykit.detectors.clock_sync import CLOCK_SYNC
from stabilitykit.detectors.trace import trace
from stabilitykit.sources.probes import ClockProbe, answer_clock, ask_clock

OTHER = """
import socket, sys, time
from stabilitykit.sources.probes import answer_clock
began, ppm = time.monotonic_ns(), int(sys.argv[2])
def clock():
    passed = time.monotonic_ns() - began
    return passed + passed * ppm // 1_000_000
answer_clock(socket.socket(fileno=int(sys.argv[1])), clock)
"""
PAUSE_S = 0.03
"""Between two readings; nobody signals, so it is a wait for time to pass."""


@contextmanager
def other_process(ppm):
    """Start a process whose clock runs fast by some ppm, and give a way to ask it."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-c", OTHER, str(theirs.fileno()), str(ppm)]
    with ours, subprocess.Popen(command, pass_fds=[theirs.fileno()]) as process:
        theirs.close()
        yield ask_clock(ours)
        ours.close()
        assert process.wait(10) == 0


@pytest.mark.capability(
    "issue 3 §1: the clock of a second process that runs 180 ppm fast, seen by ClockProbe, fires clock-skew"
)
@pytest.mark.parametrize(("ppm", "rules"), [(180, {"clock-skew"}), (0, set())], ids=["fast", "in order"])
def test_a_second_process_with_a_fast_clock(ppm, rules):
    """Forty readings over a socket: a clock that gains 180 us a second is called, one in order is not."""
    engine, nobody, decisions = Engine.load("gpu"), threading.Event(), []
    with other_process(ppm) as remote:
        probe = ClockProbe(remote)
        for _ in range(40):
            assert probe.read()
            decisions.append(engine.observe(device="pair", timestamp_s=time.monotonic(), **probe.signals()))
            nobody.wait(PAUSE_S)
    assert {rule for decision in decisions for rule in decision.fired} == rules
    assert ("resync_clock" in {a.name for d in decisions for a in d.actions}) is bool(rules)


def test_two_clocks_of_this_machine():
    """The monotonic clock and the time of day, read together, run apart by no more than NTP slews (500 ppm)."""
    probe, nobody = ClockProbe(lambda: time.clock_gettime_ns(time.CLOCK_REALTIME)), threading.Event()
    for _ in range(25):
        probe.read()
        nobody.wait(PAUSE_S / 3)
    readings = probe.signals()["clock_samples"]
    assert readings[:2].tolist() == [0, 0]
    assert (np.diff(readings[::2]) > 0).all()
    out = trace(CLOCK_SYNC, [readings], {"bound": 1000.0})[-1]
    assert abs(out["skew_ppm"]) < 550
    assert abs(out["offset_ns"]) < 1e6


def test_the_shortest_of_three_round_trips_counts():
    """Of three looks the one with the least time between both local readings is kept, with its round trip."""
    looks = iter([0, 100, 200, 210, 300, 390])
    probe = ClockProbe(iter([50, 205, 345]).__next__, local=looks.__next__, has_trips=True)
    assert probe.read()
    assert probe.signals()["clock_samples"].tolist() == [0, 0, 10]
    assert probe.signals() == {}


def test_a_clock_that_has_gone_gives_no_reading():
    """When the other side closes, there is no reading and no exception."""
    ours, theirs = socket.socketpair()
    server = threading.Thread(target=answer_clock, args=(theirs, lambda: 42))
    server.start()
    probe = ClockProbe(ask_clock(ours), tries=1)
    assert probe.read()
    theirs.shutdown(socket.SHUT_RDWR)
    server.join()
    assert not probe.read()
    assert len(probe.signals()["clock_samples"]) == 2
    ours.close()
    theirs.close()
