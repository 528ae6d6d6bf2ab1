# ruff: noqa: D102, N802 (the fake has NVIDIA's names)
from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from types import SimpleNamespace

import pytest

from stabilitykit import Engine
from stabilitykit.errors import MissingExtra, UsageError
from stabilitykit.signals import CATALOGUE
from stabilitykit.sources import PRODUCERS
from stabilitykit.sources.nvml import GpuMonitor

pynvml = importlib.import_module("pynvml")
USED = (
    *("nvmlInit", "nvmlShutdown", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetMemoryInfo"),
    *("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTemperature"),
)
GIB = 1 << 30


class FakeNvml:
    """The module's functions that the monitor calls, over two cards; the second cannot tell its utilisation."""

    NVMLError = pynvml.NVMLError
    NVML_TEMPERATURE_GPU = pynvml.NVML_TEMPERATURE_GPU

    def __init__(self):
        self.is_open = self.is_lost = False
        self.cards = [(22, 24, 97, 71), (8, 80, None, 45)]

    def nvmlInit(self):
        self.is_open = True

    def nvmlShutdown(self):
        if not self.is_open:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_UNINITIALIZED)
        self.is_open = False

    def nvmlDeviceGetCount(self):
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def card(self, handle):
        """Give a card, or the driver's error when the cards have fallen off the bus."""
        if self.is_lost or not self.is_open:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return self.cards[handle]

    def nvmlDeviceGetMemoryInfo(self, handle, version=None):
        used, total, _, _ = self.card(handle)
        return SimpleNamespace(total=total * GIB, used=used * GIB, free=(total - used) * GIB)

    def nvmlDeviceGetUtilizationRates(self, handle):
        gpu = self.card(handle)[2]
        if gpu is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return SimpleNamespace(gpu=gpu, memory=40)

    def nvmlDeviceGetTemperature(self, handle, sensor):
        assert sensor == pynvml.NVML_TEMPERATURE_GPU
        return self.card(handle)[3]


@pytest.fixture
def nvml(monkeypatch):
    """Put the fake in the module's place."""
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


@pytest.mark.parametrize("name", USED)
def test_the_fake_has_the_signatures_of_the_module(name):
    """Each function that the monitor calls exists in NVIDIA's module and takes the same arguments."""
    real = list(inspect.signature(getattr(pynvml, name)).parameters)
    assert real == list(inspect.signature(getattr(FakeNvml(), name)).parameters)


@pytest.mark.capability("issue 3 §1: NVML readings of each GPU become device samples; a missing sensor is missing")
def test_readings_become_samples(nvml):
    """Memory and utilisation are ratios, the temperature is in C; what a card cannot tell is left out."""
    with GpuMonitor(clock=iter([5.0, 6.0]).__next__) as gpus:
        first, second = gpus.samples()
    assert (first.device, first.timestamp_s) == ("gpu-0", 5.0)
    assert first.signals == {"gpu_memory_ratio": 22 / 24, "gpu_sm_ratio": 0.97, "gpu_temperature_c": 71.0}
    assert second.signals == {"gpu_memory_ratio": 0.1, "gpu_temperature_c": 45.0}
    assert set(first.signals) == set(PRODUCERS["nvml"]) <= set(CATALOGUE)
    assert not nvml.is_open


def test_lost_cards_give_no_samples(nvml):
    """A card that the driver has lost is no card at zero."""
    gpus = GpuMonitor()
    nvml.is_lost = True
    assert gpus.samples() == []
    gpus.close()
    gpus.close()


def test_a_full_card_fires(nvml):
    """What the monitor gives goes into the engine as it is, and memory above 92 % is called."""
    nvml.cards[0] = (23.5, 24, 50, 60)
    engine, gpus = Engine.load("gpu"), GpuMonitor()
    decisions = [engine.observe(device=s.device, timestamp_s=s.timestamp_s, **s.signals) for s in gpus.samples()]
    assert [d.fired for d in decisions] == [("gpu-memory-full",), ()]
    assert [d.faults for d in decisions] == [(), ()]


def test_without_a_driver_it_says_so():
    """NVIDIA's own module on a machine without its driver: an error of ours, with the driver's reason."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        with pytest.raises(UsageError, match="no GPU can be read"):
            GpuMonitor()
    else:
        pynvml.nvmlShutdown()
        with GpuMonitor() as gpus:
            assert all(str(sample.device).startswith("gpu-") for sample in gpus.samples())


def test_without_the_extra_it_names_it(monkeypatch):
    """Where the module is missing the message says what to install."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(MissingExtra, match=r"stabilitykit\[gpu\]"):
        GpuMonitor()


def test_importing_the_source_needs_no_extra():
    """The module is imported without NVIDIA's."""
    code = "import sys; import stabilitykit.sources.nvml; sys.exit('pynvml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_broken_card_hides_no_other(nvml, monkeypatch):
    """The second card is read, under its own number, when the first has no handle; without any it is an error."""

    def handle(index):
        if index == 0:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return index

    monkeypatch.setattr(nvml, "nvmlDeviceGetHandleByIndex", handle)
    with GpuMonitor() as gpus:
        assert [sample.device for sample in gpus.samples()] == ["gpu-1"]
    nvml.cards = nvml.cards[:1]
    with pytest.raises(UsageError, match="no GPU can be read"):
        GpuMonitor()
    assert not nvml.is_open


def test_errors_of_the_binding_and_impossible_values(nvml, monkeypatch):
    """What is no NVMLError does not reach the host either; what a card cannot have is left out."""
    nvml.cards = [(30, 24, 250, 71), (8, 80, 50, 900)]
    with GpuMonitor() as gpus:
        first, second = gpus.samples()
        assert first.signals == {"gpu_temperature_c": 71.0}
        assert second.signals == {"gpu_memory_ratio": 0.1, "gpu_sm_ratio": 0.5}
        monkeypatch.setattr(nvml, "card", lambda _: 1 / 0)
        assert gpus.samples() == []


def test_a_card_that_comes_back_is_read_again(nvml, monkeypatch):
    """A handle that failed at the start is asked for again, and so is one whose card gives nothing any more."""
    handles = {0: None, 1: 1}

    def handle(index):
        if handles[index] is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return handles[index]

    monkeypatch.setattr(nvml, "nvmlDeviceGetHandleByIndex", handle)

    def names(gpus):
        return [sample.device for sample in gpus.samples()]

    with GpuMonitor() as gpus:
        assert names(gpus) == ["gpu-1"]
        handles[0] = 0
        assert names(gpus) == ["gpu-0", "gpu-1"]
        nvml.is_lost, handles[0] = True, None
        assert names(gpus) == []
        nvml.is_lost = False
        assert names(gpus) == ["gpu-1"]
