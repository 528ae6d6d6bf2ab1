from __future__ import annotations

import gzip

import pytest

from stabilitykit import Engine
from stabilitykit.errors import RecordError
from stabilitykit.sources.profiler import nsight, read_profile, read_tables

GEMM = {"launch_host_us": 4.2, "launch_queue_us": 1.5, "launch_sync_us": 0.0, "launch_total_us": 5.7}
WANTED = {
    "kern_exec_trace": [
        {"kernel_us": 3.2, **GEMM},
        {
            "kernel_us": 7.52,
            "launch_host_us": 78.512,
            "launch_queue_us": 0.0,
            "launch_sync_us": 0.0,
            "launch_total_us": 65.881,
        },
        {"kernel_us": 3.3, **GEMM, "launch_host_us": 3.9, "launch_queue_us": 96.0, "launch_total_us": 99.9},
    ],
    "kern_exec_sum": [
        {"kernel_us": 3.2, **GEMM, "launch_host_us": 4.0, "launch_total_us": 5.8},
        {"kernel_us": 7.0, **GEMM, "launch_host_us": 6.0, "launch_queue_us": 0.0, "launch_total_us": 4.0},
    ],
    "gpu_trace": [{"kernel_us": 3.2}, {"kernel_us": 3.2}, {"kernel_us": 12.0}],
    "gpu_kern_sum": [{"kernel_us": 3.0}, {"kernel_us": 2.0}],
    "api_sum": [{"launch_sync_us": 41.0}, {"launch_host_us": 2.6}],
    "ncu_details": [{"kernel_us": 3.2}, {"kernel_us": 1.904}],
    "ncu_raw": [{"kernel_us": 3.2}, {"kernel_us": 1516.75}],
}


@pytest.fixture
def profiles(root):
    """Give the folder of profiles."""
    return root / "tests" / "data" / "profiler"


@pytest.mark.capability("issue 3 §1: nsys stats and ncu CSV become kernel and launch samples")
@pytest.mark.parametrize("name", WANTED)
def test_tables(profiles, name):
    """Each documented layout gives its samples, in microseconds, and the engine takes all of them."""
    samples = read_profile(profiles / f"{name}.csv")
    assert [s.signals for s in samples] == [pytest.approx(wanted) for wanted in WANTED[name]]
    engine = Engine.load("gpu")
    decisions = [engine.observe(device=s.device, timestamp_s=s.timestamp_s, **s.signals) for s in samples]
    assert [d.faults for d in decisions] == [()] * len(samples)


def test_devices_and_their_name(profiles):
    """The device is that of the table, or the one that the caller says."""
    path = profiles / "kern_exec_trace.csv"
    assert [s.device for s in read_profile(path)] == ["gpu-0", "gpu-0", "gpu-1"]
    assert {s.device for s in read_profile(path, device="gpu-0-kernels")} == {"gpu-0-kernels"}


def test_other_units_and_two_tables(tmp_path):
    """`--timeunit us` changes the header; several reports follow each other, with messages between them."""
    path = tmp_path / "report.csv.gz"
    text = (
        'Processing [a.sqlite] with [x.py]...\n"Time (%)","Total Time (us)","Instances","Avg (us)","Name"\n'
        "100.0,640,200,3.2,gemm\n\nProcessing [a.sqlite] with [y.py]...\n"
        "Time (%),Total Time (ms),Num Calls,Avg (ms),Name\n2.0,1,4,0.25,cuLaunchKernel\n1.0,1,4,0.25,poll\nbye\n"
    )
    path.write_bytes(gzip.compress(text.encode()))
    assert [s.signals for s in read_profile(path)] == [{"kernel_us": 3.2}, {"launch_host_us": 250.0}]


HEAD = "Start (ns),Duration (ns),CorrId,Name\n"


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", "", "neither a Chrome trace nor a table"),
        ("a,b\n1,2\n", "", "neither a Chrome trace nor a table"),
        (HEAD + "1,2,3\n", ":2", "3 cells, but the header has 4"),
        (HEAD + "1,2,3,k\n1,x,3,k\n", ":3", "`Duration` is no number"),
        (HEAD + "1,,3,k\n", ":2", "`Duration` is no number"),
        (HEAD + '1,2,3,"k\n' + "x" * 200_000, ":", "field larger than field limit"),
        (HEAD + "1", ":2", "1 cells"),
        (
            '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n0,k,Duration,cycle,3\n',
            ":2",
            "no unit of time",
        ),
        (HEAD + "1," + "2" * (nsight.MAX_LINE + 1) + "\n", ":2", "a line of more than 1 MiB"),
        (
            "PID,DevId,Count,QCount,TAvg (ns),AAvg (ns),QAvg (ns),KAvg (ns),Kernel Name\n1,0,0,1,1,1,1,1,k\n",
            ":2",
            "zero",
        ),
    ],
)
def test_damage_is_located(tmp_path, text, place, reason):
    """Every kind of damage is an error with its line."""
    path = tmp_path / "report.csv"
    path.write_text(text)
    with pytest.raises(RecordError) as caught:
        read_profile(path)
    assert str(caught.value).startswith(f"{path}{place}")
    assert reason in str(caught.value)


def test_what_cannot_be_read(tmp_path):
    """No file, no text, cut gzip: an error of ours each time."""
    with pytest.raises(RecordError, match="No such file"):
        read_profile(tmp_path / "gone.csv")
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"Start\xff\xfe")
    with pytest.raises(RecordError, match="not UTF-8: byte 0xFF"):
        read_tables(binary)
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress((HEAD + "1,2,3,k\n" * 9999).encode())[:60])
    with pytest.raises(RecordError, match="damaged gzip"):
        read_tables(cut)
