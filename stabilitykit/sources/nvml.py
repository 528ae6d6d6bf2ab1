"""What NVIDIA's driver says of each GPU of this machine (NVML, extra ``gpu``), as samples of devices.

===============================  =====================  =======================================================
NVML                             signal                 remark
===============================  =====================  =======================================================
``nvmlDeviceGetMemoryInfo``      ``gpu_memory_ratio``   ``used / total``
``nvmlDeviceGetUtilizationRates``  ``gpu_sm_ratio``     share of time with a kernel running, not of SMs in use
``nvmlDeviceGetTemperature``     ``gpu_temperature_c``  of the chip
===============================  =====================  =======================================================

A sensor that a card does not have, that fails, or that gives a value outside its signal's domain, is not in the sample;
a card that gives nothing is left out and asked for anew the next time, the others keep their numbers. Call it from a
timer of the host's, every five seconds or faster, and hand what it gives to the engine:

    with GpuMonitor() as gpus:
        for sample in gpus.samples():
            engine.observe(device=sample.device, timestamp_s=sample.timestamp_s, **sample.signals)
"""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from stabilitykit.errors import MissingExtra, UsageError
from stabilitykit.sample import Sample
from stabilitykit.signals import CATALOGUE

__all__ = ["GpuMonitor"]


class GpuMonitor:
    """Reads all GPUs of this machine.

    Parameters
    ----------
    clock
        Seconds of a steady clock, for the samples.

    Raises
    ------
    MissingExtra
        ``pynvml`` is not installed (extra ``gpu``).
    UsageError
        There is no driver, or it does not answer, or no card does.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        try:
            self._nvml: Any = importlib.import_module("pynvml")
        except ImportError:
            raise MissingExtra("pynvml", "gpu") from None
        self._clock = clock
        try:
            self._nvml.nvmlInit()
            count = self._nvml.nvmlDeviceGetCount()
        except Exception as error:
            raise UsageError(f"no GPU can be read: {error}") from None
        self._count = count
        self._handles: dict[int, Any] = {}
        failed = self._look()
        if failed is not None and not self._handles:
            self.close()
            raise UsageError(f"no GPU can be read: {failed}")

    def __enter__(self) -> GpuMonitor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the driver."""
        with contextlib.suppress(Exception):  # it may have let go already
            self._nvml.nvmlShutdown()

    def samples(self) -> list[Sample]:
        """Give one sample of each GPU that tells anything now, named ``gpu-<number>``."""
        self._look()
        found = []
        for number, handle in sorted(self._handles.items()):
            signals = self._signals(handle)
            if signals:
                found.append(Sample(device=f"gpu-{number}", timestamp_s=self._clock(), signals=signals))
            else:
                del self._handles[number]  # a card that was reset needs a new one
        return found

    def _look(self) -> Exception | None:
        """Ask for the handles that are missing; gives the last failure."""
        failed = None
        for number in range(self._count):
            if number not in self._handles:
                try:
                    self._handles[number] = self._nvml.nvmlDeviceGetHandleByIndex(number)
                except Exception as error:
                    failed = error
        return failed

    def _signals(self, handle: Any) -> dict[str, float]:
        nvml = self._nvml
        signals = {
            "gpu_memory_ratio": self._ask(lambda: _share(nvml.nvmlDeviceGetMemoryInfo(handle))),
            "gpu_sm_ratio": self._ask(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100.0),
            "gpu_temperature_c": self._ask(
                lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
            ),
        }
        return {name: value for name, value in signals.items() if value is not None and _is_valid(name, value)}

    def _ask(self, sensor: Callable[[], float | None]) -> float | None:
        try:
            return sensor()
        except Exception:  # the driver's errors, and whatever its binding raises: the host's loop goes on
            return None


def _is_valid(signal: str, value: float) -> bool:
    return CATALOGUE[signal].lo <= value <= CATALOGUE[signal].hi


def _share(memory: Any) -> float | None:
    return memory.used / memory.total if memory.total else None
