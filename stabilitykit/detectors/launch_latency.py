"""Where the latency of a kernel launch goes: to the host, the stream's queue or a synchronisation.

Inputs
------
host, queue, sync
    Parts of one launch in microseconds: in the launching call, waiting in the stream, waiting in a
    synchronising call.
total
    The launch measured as one, from the call to the kernel's start.

Maths
-----
``bound = host + queue + sync``; a share is a part over the bound, so the three shares add up to 1. The parts
follow each other only if no stage overlaps another. A kernel may start before its launching call returns,
and then the parts take longer than the whole: the bound is an upper bound of the latency, not the latency.
``residual = total - bound`` is time that no part explains; below ``-resolution`` the parts overlap or two
clocks disagree, and ``is_inconsistent`` says so.

A part that is unknown leaves bound and shares unknown: it is not zero. Each launch stands for itself; a rule
says how many in a row matter.

When not to use it
------------------
With launches inside a CUDA graph, which have no call of their own. The shares are not a measure of what a
faster host would gain: host time that overlaps with the queue is hidden.

References
----------
.. [1] formulas B2.1: 5 to 8 us on an A100; the resolution of CUDA events is about half a microsecond.
.. [2] NVIDIA, Nsight Systems Analysis Guide, ``cuda_kern_exec_trace``: a kernel may start before its launching
   call returns.

Examples
--------
A launch in order, one that waits behind others, and one whose kernel ran before its call was over:

>>> from stabilitykit.detectors.launch_latency import LAUNCH_LATENCY
>>> from stabilitykit.detectors.trace import trace
>>> parts = [(4.0, 1.0, 0.0, 5.2), (4.0, 90.0, 6.0, 100.0), (78.5, 0.0, 0.0, 65.9)]
>>> turns = trace(LAUNCH_LATENCY, [dict(zip(("host", "queue", "sync", "total"), p)) for p in parts])
>>> [(out["bound_us"], out["queue_share"], round(out["residual_us"], 1)) for out in turns]
[(5.0, 0.2, 0.2), (100.0, 0.9, 0.0), (78.5, 0.0, -12.6)]
>>> [out["is_inconsistent"] for out in turns]
[0.0, 0.0, 1.0]
"""

from __future__ import annotations

import math

from stabilitykit.kernels import kernel
from stabilitykit.kernels.pointers import Block
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["LAUNCH_LATENCY", "launch_latency_kernel"]


@kernel
def launch_latency_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Add the parts up and compare them with the whole; c is ``resolution``."""
    total, out = float(x[io[3]]), io[4]
    bound = float(x[io[0]]) + float(x[io[1]]) + float(x[io[2]])
    x[out] = bound
    for k in range(3):
        x[out + 1 + k] = float(x[io[k]]) / bound if bound > 0.0 else math.nan
    residual = total - bound
    x[out + 4] = residual
    x[out + 6] = -float(c[0])
    x[out + 5] = math.nan if math.isnan(residual) else 1.0 if residual < -float(c[0]) else 0.0
    return 0


def _share(name: str, what: str) -> OutputSpec:
    return OutputSpec(name, "ratio", f"{what} / bound", lo=0.0, hi=1.0)


LAUNCH_LATENCY = DetectorSpec(
    type="launch_latency",
    doc="the parts of a kernel launch's latency, and whether they fit the whole",
    inputs={
        "host": "launch_host_us",
        "queue": "launch_queue_us",
        "sync": "launch_sync_us",
        "total": "launch_total_us",
    },
    settings=(
        SettingSpec(
            "resolution",
            0.5,
            "how far the parts may exceed the whole; about the resolution of CUDA events (B2.1)",
            "us",
            lo=0.0,
            hi=1e6,
        ),
    ),
    outputs=(
        OutputSpec("bound_us", "us", "sum of the three parts: the latency at most", lo=0.0),
        _share("host_share", "time in the launching call"),
        _share("queue_share", "time in the stream's queue"),
        _share("sync_share", "time in a synchronising call"),
        OutputSpec("residual_us", "us", "measured as one - sum of the parts"),
        OutputSpec("is_inconsistent", "bool", "the parts take longer than the whole", kind="bool", lo=0.0, hi=1.0),
        OutputSpec("tolerated_us", "us", "least residual that clocks of this resolution explain", hi=0.0),
    ),
    kernel=launch_latency_kernel,
    layout=lambda settings: Layout(),
    config=lambda settings: (float(settings["resolution"]),),
)
"""See the module."""
