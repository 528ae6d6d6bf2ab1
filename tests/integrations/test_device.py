# ruff: noqa: A002, D102, N802, N803 (the stand-in has NVIDIA's names)
"""Adapters of the machine, on this one: real memory, a real process, real clocks; the GPU's driver is a stand-in."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from stabilitykit.errors import UsageError
from stabilitykit.integrations.carrying_out import Host
from stabilitykit.integrations.device import BackgroundJobs, ClockResync, GpuClocks, MemoryReleaser
from stabilitykit.mitigations.directives import LowerClocks, PauseBackground, ReleaseMemory
from stabilitykit.sources.probes import ClockProbe
from tests.integrations.decisions import asking, slow

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

GROW = """
import ctypes, gc
from pathlib import Path
from stabilitykit.integrations.device import MemoryReleaser
from stabilitykit.mitigations.directives import ReleaseMemory
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
blocks = [bytes(4_000) for _ in range(100_000)]
pins = blocks[::1_000]  # the heap cannot shrink from its end
full = resident()
del blocks
gc.collect()
held = resident()
assert MemoryReleaser()(ReleaseMemory())
print(full, held, resident())
"""


@pytest.mark.capability("issue 5 §6: release_memory gives a process's unused memory back to the system")
def test_release_memory():
    """Of 400 MB freed in a fragmented heap the C library holds most; after the release it is the system's."""
    if "glibc" not in (os.confstr("CS_GNU_LIBC_VERSION") or ""):
        pytest.skip("another C library")
    done = subprocess.run([sys.executable, "-c", GROW], capture_output=True, text=True, check=True)
    full, held, after = map(int, done.stdout.split())
    assert held > 0.8 * full
    assert after < held - 200_000_000


def state_of(pid):
    """Give the letter of a process's state."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]


def wait_for(pid, letters):
    """Wait until a process is in one of the states."""
    until = time.monotonic() + 10.0
    while state_of(pid) not in letters:
        assert time.monotonic() < until


@pytest.mark.capability("issue 5 §6: pause_background stops a real process and lets it go on")
def test_pause_background(tmp_path):
    """A decision stops the job, `resume` lets it go on, and one that has ended is no error."""
    job = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    jobs = BackgroundJobs([job.pid])
    try:
        host = Host({"pause_background": jobs})
        assert host.carry_out(slow(asking(tmp_path, "{pause_background: {}}"))).done == ("pause_background",)
        wait_for(job.pid, "T")
        assert jobs.resume()
        wait_for(job.pid, "SR")
    finally:
        job.kill()
        job.communicate()
    assert not jobs(PauseBackground())


@pytest.mark.parametrize("pid", [0, 1, -1, os.getpid()])
def test_no_job_of_ours(pid):
    """The system's first process, groups, and this process are no background jobs."""
    with pytest.raises(UsageError):
        BackgroundJobs([pid])


@pytest.mark.capability("issue 5 §6: resync_clock reads the other clock anew")
def test_resync_clock(tmp_path):
    """The readings a decision asks for are in the probe's next signals; a clock that is gone is not done."""
    engine = asking(tmp_path, "{resync_clock: {}}")
    probe = ClockProbe(time.perf_counter_ns)
    assert Host({"resync_clock": ClockResync(probe)}).carry_out(slow(engine)).done == ("resync_clock",)
    samples = probe.signals()["clock_samples"].reshape(-1, 2)
    assert len(samples) == 3
    assert abs(samples[-1, 0] - samples[-1, 1]) < 1_000_000_000

    def gone():
        raise OSError("no route")

    assert Host({"resync_clock": ClockResync(ClockProbe(gone))}).carry_out(slow(engine)).done == ()


class Driver:
    """Stands in for NVML: changing the clocks of a real card needs an administrator, and harms its other users."""

    NVML_CLOCK_SM = 1

    def __init__(self):
        self.said: list[tuple[Any, ...]] = []

    def nvmlInit(self):
        self.said.append(("init",))

    def nvmlShutdown(self):
        self.said.append(("shutdown",))

    def nvmlDeviceGetHandleByIndex(self, index):
        return f"gpu {index}"

    def nvmlDeviceGetMaxClockInfo(self, handle, type):
        assert type == self.NVML_CLOCK_SM
        return 1980

    def nvmlDeviceSetGpuLockedClocks(self, handle, minGpuClockMHz, maxGpuClockMHz):
        self.said.append(("set", handle, minGpuClockMHz, maxGpuClockMHz))

    def nvmlDeviceResetGpuLockedClocks(self, handle):
        self.said.append(("reset", handle))


@pytest.mark.parametrize("name", sorted(name for name in vars(Driver) if name.startswith("nvml")))
def test_the_stand_in_has_the_signatures_of_the_module(name):
    """Each function that the adapter calls exists in NVIDIA's module and takes the same arguments; the clock too."""
    pynvml = importlib.import_module("pynvml")
    real = list(inspect.signature(getattr(pynvml, name)).parameters)
    assert real == list(inspect.signature(getattr(Driver(), name)).parameters)
    assert pynvml.NVML_CLOCK_SM == Driver.NVML_CLOCK_SM


def test_lower_clocks(monkeypatch):
    """The greatest clock is locked to the share, restored by the driver's own call, and the driver is let go."""
    driver = Driver()
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    clocks = GpuClocks([3], share=0.5)
    assert clocks(LowerClocks())
    clocks.restore()
    lowered = [("init",), ("set", "gpu 3", 0, 990), ("shutdown",)]
    assert driver.said == [*lowered, ("init",), ("reset", "gpu 3"), ("shutdown",)]


def test_lower_clocks_without_a_driver(tmp_path, caplog):
    """With the real package and no GPU the action is not done, and the log says why."""
    pytest.importorskip("pynvml")
    try:
        assert GpuClocks([])(LowerClocks())
        pytest.skip("there is a GPU")
    except Exception:
        engine = asking(tmp_path, "{lower_clocks: {}}")
    assert Host({"lower_clocks": GpuClocks([0])}).carry_out(slow(engine)).done == ()
    assert "action=lower_clocks error=NVMLError" in caplog.text
    with pytest.raises(UsageError):
        GpuClocks([0], share=0.0)


def test_memory_without_torch():
    """A process that has not imported torch does not import it for this."""
    before = "torch" in sys.modules
    assert MemoryReleaser()(ReleaseMemory())
    assert ("torch" in sys.modules) == before


@pytest.mark.parametrize("pid", [1, 0, -1, True, 2.5, 1 << 31, 1 << 80, os.getpid()])
def test_what_is_no_background_job(pid):
    """Everything at once, this process and what is no process id are refused."""
    with pytest.raises(UsageError):
        BackgroundJobs([pid])


def test_a_job_that_may_not_be_signalled_costs_no_other(monkeypatch):
    """The others are told all the same, and the error comes after them."""
    told = []

    def kill(pid, number):
        told.append(pid)
        if pid == 4_000:
            raise PermissionError

    monkeypatch.setattr(os, "kill", kill)
    with pytest.raises(PermissionError):
        BackgroundJobs([4_000, 4_001]).resume()
    assert told == [4_000, 4_001]


def test_clocks_of_other_gpus_are_given_back(monkeypatch):
    """A GPU that has fallen off the bus keeps no other at its low clocks."""
    driver = Driver()
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    clocks, handle = GpuClocks([0, 1]), driver.nvmlDeviceGetHandleByIndex

    def lost(index):
        if index == 0:
            raise OSError
        return handle(index)

    monkeypatch.setattr(driver, "nvmlDeviceGetHandleByIndex", lost)
    with pytest.raises(OSError, match=r"\A\Z"):
        clocks.restore()
    assert driver.said == [("init",), ("reset", "gpu 1"), ("shutdown",)]
