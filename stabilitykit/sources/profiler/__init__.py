"""Profiles of kernels and launches, turned into samples of a device.

``torch.profiler`` (Chrome trace, JSON), ``nsys stats --format csv`` and ``ncu --csv``; each plain or gzip. A profile
is read after the fact: replay its samples through ``Engine.observe``.

=============================  ==============================================================================
file                           samples
=============================  ==============================================================================
Chrome trace with GPU kernels  one a kernel: ``kernel_us``, and of its launch the three parts and the whole
Chrome trace without           one an outermost operator of the CPU: ``kernel_us``, device ``cpu``
``cuda_kern_exec_trace``       one a kernel: ``kernel_us``, and of its launch the parts and the whole
``cuda_gpu_trace``             one a kernel: ``kernel_us``
``cuda_kern_exec_sum``         one a kernel's name: the same as the trace, by their means
``cuda_gpu_kern_sum``          one a kernel's name: its mean ``kernel_us``
``cuda_api_sum``               one a launching or synchronising call: its mean, a part of the launch
``ncu --csv``                  one a kernel: ``kernel_us``
=============================  ==============================================================================

Examples
--------
>>> import pathlib, tempfile
>>> from stabilitykit.sources.profiler import read_profile
>>> text = "Time (%),Total Time (ns),Instances,Avg (ns),Name" + chr(10) + "100.0,6400,2,3200.0,gemm"
>>> with tempfile.TemporaryDirectory() as folder:
...     path = pathlib.Path(folder, "kernels.csv")
...     _ = path.write_text(text)
...     samples = read_profile(path)
>>> [(sample.device, sample.signals) for sample in samples]
[('gpu-0', {'kernel_us': 3.2})]
"""

from __future__ import annotations

from pathlib import Path

import attrs

from stabilitykit.sample import Sample
from stabilitykit.sources.profiler.chrome import read_trace
from stabilitykit.sources.profiler.nsight import read_tables
from stabilitykit.sources.profiler.text import open_text

__all__ = ["read_profile", "read_tables", "read_trace"]


def read_profile(path: Path, *, device: str | None = None) -> list[Sample]:
    """Read a profile of any of the kinds, in the order of time where it has times.

    Parameters
    ----------
    path
        The file; gzip and the kind are recognised by what is in it.
    device
        Name of the device instead of ``gpu-<number>`` or ``cpu``: one of its own where another source samples the
        same device, for a sample without the other's signals is one in which they are unknown.

    Raises
    ------
    RecordError
        It cannot be opened, is none of these kinds, is damaged (with line and column), or too large.
    """
    with open_text(path) as stream:
        begin = stream.read(4096).lstrip()
    is_json = begin.startswith("{") or (begin.startswith("[") and begin[1:].lstrip()[:1] in ("", "{", "]"))
    samples = read_trace(path) if is_json else read_tables(path)
    return samples if device is None else [attrs.evolve(sample, device=device) for sample in samples]
