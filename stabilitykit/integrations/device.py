"""What a host can do on its own machine: release memory, lower clocks, pause background jobs, read a clock anew."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from stabilitykit.errors import MissingExtra, UsageError
from stabilitykit.mitigations.directives import LowerClocks, PauseBackground, ReleaseMemory, ResyncClock

__all__ = ["BackgroundJobs", "ClockReader", "ClockResync", "GpuClocks", "MemoryReleaser"]


class MemoryReleaser:
    """``release_memory``: gives back what Python, the C library and torch (where the process uses it) hold unused."""

    def __call__(self, asked: ReleaseMemory) -> bool:
        """Release it; True, for something is always looked through."""
        gc.collect()
        torch: Any = sys.modules.get("torch")  # a process that does not use torch has no memory of its
        if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
            torch.cuda.empty_cache()
        with contextlib.suppress(OSError, AttributeError):  # another C library than glibc
            ctypes.CDLL(None).malloc_trim(0)
        return True


class BackgroundJobs:
    """``pause_background``: stops processes that the host names, and lets them go on (POSIX).

    Parameters
    ----------
    pids
        The processes; one that has ended is passed over.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = tuple(pids)
        if any(type(pid) is not int or not 1 < pid < 1 << 31 or pid == os.getpid() for pid in self._pids):
            raise UsageError("background jobs are other processes, by their ids")

    def __call__(self, asked: PauseBackground) -> bool:
        """Pause them; False when none is there. Of one that may not be signalled the error, after all others."""
        return self._send(signal.SIGSTOP)

    def resume(self) -> bool:
        """Let them go on; False when none is there. Of one that may not be signalled the error, after all others."""
        return self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> bool:
        reached, refused = False, None
        for pid in self._pids:
            try:
                os.kill(pid, number)
                reached = True
            except ProcessLookupError:
                continue
            except OSError as error:
                refused = error  # the others are told all the same
        if refused is not None:
            raise refused
        return reached


class GpuClocks:
    """``lower_clocks``: locks the clocks of GPUs to at most a share of their greatest (NVML; needs an administrator).

    Parameters
    ----------
    indices
        The GPUs, as the driver numbers them.
    share
        Of the greatest clock of the multiprocessors.

    Raises
    ------
    MissingExtra
        ``pynvml`` is not installed (extra ``gpu``).
    """

    def __init__(self, indices: Iterable[int], *, share: float = 0.7) -> None:
        if not 0.0 < share <= 1.0:
            raise UsageError(f"a share is in (0, 1], not {share!r}")
        try:
            self._nvml: Any = importlib.import_module("pynvml")
        except ImportError:
            raise MissingExtra("pynvml", "gpu") from None
        self._indices, self._share = tuple(indices), share

    def __call__(self, asked: LowerClocks) -> bool:
        """Lower them; raises NVML's error where that is not allowed."""
        nvml = self._nvml
        with self._driver():
            for index in self._indices:
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                greatest = nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)
                nvml.nvmlDeviceSetGpuLockedClocks(handle, 0, int(greatest * self._share))
        return True

    def restore(self) -> None:
        """Give the clocks back to the driver; of a GPU that fails its error, after all others."""
        with self._driver():
            failed = None
            for index in self._indices:
                try:
                    self._nvml.nvmlDeviceResetGpuLockedClocks(self._nvml.nvmlDeviceGetHandleByIndex(index))
                except Exception as error:
                    failed = error  # the others are given back all the same
            if failed is not None:
                raise failed

    @contextlib.contextmanager
    def _driver(self) -> Iterator[None]:
        self._nvml.nvmlInit()
        try:
            yield
        finally:
            self._nvml.nvmlShutdown()


class ClockReader(Protocol):
    """What reads two clocks: ``sources.probes.ClockProbe``."""

    def read(self) -> bool:
        """Take one reading; False when the other clock did not answer."""


class ClockResync:
    """``resync_clock``: reads the other clock anew; the next ``signals()`` of the probe carry what it found.

    Parameters
    ----------
    clock
        The probe, shared with the host's timer.
    readings
        Readings taken at once.
    """

    def __init__(self, clock: ClockReader, *, readings: int = 3) -> None:
        self._clock, self._readings = clock, readings

    def __call__(self, asked: ResyncClock) -> bool:
        """Read; False when the other clock never answered."""
        return sum(self._clock.read() for _ in range(self._readings)) > 0
