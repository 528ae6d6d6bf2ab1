"""Record two traces of torch.profiler on this machine's CPU: in order, and with far more threads than cores.

    python -m benchmarks.record.torch_ops FOLDER

Needs torch. Writes ``ops_calm.json.gz`` and ``ops_crowded.json.gz``: the same three operations, a hundred times each,
with one thread and with THREADS threads, which then wait for each other at the end of every operation.
"""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path
from typing import Any

ROUNDS = 100
THREADS = 32
SHAPE = (256, 512)


def work(torch: Any, rounds: int) -> None:
    a = torch.randn(*SHAPE)
    for _ in range(rounds):
        torch.add(torch.softmax(torch.relu(a), 1), a)


def record(torch: Any, name: str, threads: int) -> None:
    torch.set_num_threads(threads)
    work(torch, 2 * ROUNDS)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        work(torch, ROUNDS)
    profiler.export_chrome_trace(name)
    path = Path(name)
    with open(f"{name}.gz", "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as out:
        out.write(path.read_bytes())
    path.unlink()


def main() -> None:
    import torch

    os.chdir(sys.argv[1])  # the trace holds the path that it was written to, as given
    record(torch, "ops_calm.json", 1)
    record(torch, "ops_crowded.json", THREADS)


if __name__ == "__main__":
    main()
