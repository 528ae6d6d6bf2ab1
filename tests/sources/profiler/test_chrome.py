from __future__ import annotations

import json

import pytest

from stabilitykit import Engine
from stabilitykit.errors import RecordError
from stabilitykit.sources import PRODUCERS
from stabilitykit.sources.profiler import chrome, read_profile, read_trace

MINE = {"kernel_slow": "500 us"}
"""Operators of a CPU on tensors of half a megabyte take longer than kernels of a GPU: set from the calm recording."""


@pytest.fixture
def profiles(root):
    """Give the folder of recorded profiles."""
    return root / "tests" / "data" / "profiler"


def observe(samples):
    """Give an engine's decisions about a profile."""
    engine = Engine.load("gpu", params=MINE)
    return [engine.observe(device=s.device, timestamp_s=s.timestamp_s, **s.signals) for s in samples]


@pytest.mark.capability(
    "issue 3 §1: a real torch.profiler trace of crowded threads fires kernel-tail, the calm one does not"
)
@pytest.mark.parametrize(("name", "rules"), [("ops_crowded", {"kernel-tail"}), ("ops_calm", set())])
def test_a_real_trace(profiles, name, rules):
    """The same operators with 32 threads on two cores have a tail; with one thread they have none."""
    samples = read_profile(profiles / f"{name}.json.gz")
    decisions = observe(samples)
    assert len(samples) == 301
    assert {sample.device for sample in samples} == {"cpu"}
    assert {rule for decision in decisions for rule in decision.fired} == rules
    assert not [fault for decision in decisions for fault in decision.faults]


def event(category, name, start, length, **arguments):
    """Give a complete event."""
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": length, "pid": 3, "tid": 7, "args": arguments}


def trace_of(folder, *events):
    """Write a trace."""
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def test_kernels_and_their_launches(tmp_path):
    """A kernel has its duration, and of its launch the call, the wait, the synchronisation within it, the whole."""
    samples = read_trace(
        trace_of(
            tmp_path,
            event("cuda_runtime", "cudaLaunchKernel", 100.0, 4.0, correlation=1),
            event("cuda_runtime", "cudaDeviceSynchronize", 130.0, 60.0, correlation=2),
            event("kernel", "gemm", 150.0, 30.0, correlation=1, device=1, stream=7),
            event("gpu_memcpy", "Memcpy HtoD", 90.0, 500.0, correlation=8, device=1),
            event("cpu_op", "aten::mm", 99.0, 9.0),
            {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "python"}},
        )
    )
    assert [s.device for s in samples] == ["gpu-1"]
    assert samples[0].signals == {
        "kernel_us": 30.0,
        "launch_host_us": 4.0,
        "launch_queue_us": 26.0,
        "launch_sync_us": 20.0,
        "launch_total_us": 50.0,
    }
    assert set(samples[0].signals) == set(PRODUCERS["profiler"])
    assert samples[0].timestamp_s == pytest.approx(180e-6)


def test_a_kernel_may_begin_before_its_call_returns(tmp_path):
    """Then nothing waited, and the whole is shorter than the call: the rule on inconsistent launches says so."""
    launches = [event("cuda_runtime", "cudaLaunchKernel", 100.0 * k, 9.0, correlation=k) for k in range(4)]
    kernels = [event("kernel", "gemm", 100.0 * k + 5, 3.0, correlation=k, device=0) for k in range(4)]
    samples = read_trace(trace_of(tmp_path, *launches, *kernels))
    assert {s.signals["launch_queue_us"] for s in samples} == {0.0}
    assert {s.signals["launch_total_us"] for s in samples} == {5.0}
    assert "launch-inconsistent" in {rule for decision in observe(samples) for rule in decision.fired}


def test_a_kernel_without_its_launch_has_a_duration(tmp_path):
    """A launch outside the trace, or one that seems to come after its kernel, says nothing."""
    late = event("cuda_runtime", "cudaLaunchKernel", 900.0, 4.0, correlation=2)
    kernels = [event("kernel", "k", 10.0 * n, 2.0, correlation=n, device=0) for n in (1, 2)]
    assert [s.signals for s in read_trace(trace_of(tmp_path, late, *kernels))] == [{"kernel_us": 2.0}] * 2


def test_two_kernels_that_end_together_are_two_samples(tmp_path):
    """Two streams may end in one moment; the engine sees both, in order."""
    kernels = [event("kernel", "k", 50.0 - n, n, device=0) for n in (2.0, 5.0, 3.0)]
    samples = read_trace(trace_of(tmp_path, *kernels))
    times = [s.timestamp_s for s in samples]
    assert times == sorted(set(times))
    assert [d.faults for d in observe(samples)] == [()] * 3


def test_inner_operators_are_part_of_the_outer(tmp_path):
    """Of operators that call each other the outermost counts, on each thread by itself."""
    other = event("cpu_op", "aten::add", 12.0, 3.0) | {"tid": 8}
    inner, outer = event("cpu_op", "aten::_softmax", 11.0, 8.0), event("cpu_op", "aten::softmax", 10.0, 10.0)
    samples = read_trace(trace_of(tmp_path, inner, outer, other, event("cpu_op", "aten::relu", 20.0, 2.0)))
    assert [s.signals["kernel_us"] for s in samples] == [3.0, 10.0, 2.0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"dur": None}, "`dur` is no number"),
        ({"dur": -1.0}, "`dur` is negative"),
        ({"ts": "12"}, "`ts` is no number"),
        ({"ts": True}, "`ts` is no number"),
        ({"dur": float("inf")}, "`dur` is no number"),
        ({"args": {"correlation": []}, "cat": "cuda_runtime", "name": "cudaLaunchKernel"}, "`correlation` is neither"),
    ],
)
def test_a_bad_event_is_located(tmp_path, change, reason):
    """An event that cannot be what it says is an error with its line."""
    path = tmp_path / "trace.json"
    good = event("kernel", "k", 1.0, 1.0)
    path.write_text("[" + json.dumps(good) + ",\n" + json.dumps(good | change) + "]")
    with pytest.raises(RecordError, match=rf"trace\.json:2: .*{reason}"):
        read_profile(path)


def test_too_many_events_are_refused(tmp_path, monkeypatch):
    """A trace of more events than are held ends with an error, not in swap."""
    monkeypatch.setattr(chrome, "MAX_SAMPLES", 5)
    path = trace_of(tmp_path, *[event("kernel", "k", n, 1.0, device=0) for n in range(6)])
    with pytest.raises(RecordError, match="more than 5 events"):
        read_trace(path)


def _kernel(**more):
    return {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "ts": 1.0, "dur": 2.0, "args": {}, **more}


def _written(path, *events):
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return path


def test_correlation_that_is_none(tmp_path):
    """A list where the correlation belongs is a located error."""
    path = _written(tmp_path / "t.json", _kernel(), _kernel(args={"correlation": [1]}))
    with pytest.raises(RecordError, match=r"t\.json:1: `correlation`"):
        read_profile(path)


def test_time_beyond_every_float(tmp_path):
    """A kernel that ends at no finite time is dropped, the others stay."""
    samples = read_profile(_written(tmp_path / "t.json", _kernel(ts=1e308, dur=1e308), _kernel()))
    assert [sample.timestamp_s for sample in samples] == [3e-6]


def test_names_of_devices(tmp_path):
    """A name has a bounded length and nothing that moves a cursor."""
    (sample,) = read_profile(_written(tmp_path / "t.json", _kernel(args={"device": "\x1b[2J\n" + "é" * 9_000})))
    assert sample.device is not None
    assert sample.device.isprintable()
    assert len(sample.device.encode()) <= 68
