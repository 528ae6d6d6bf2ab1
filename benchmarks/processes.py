"""CPU time of fresh interpreters, one program after the other, several rounds."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence


def cpu_times(programs: Sequence[tuple[str, dict[str, str]]], rounds: int = 7) -> list[float]:
    """Median CPU seconds (user and system) of each program."""
    found: list[list[float]] = [[] for _ in programs]
    for _ in range(rounds):
        for k, (program, environment) in enumerate(programs):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(
                [sys.executable, "-c", program],
                check=True,
                env={**os.environ, **environment},
                stdout=subprocess.DEVNULL,
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            found[k].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return [statistics.median(t) for t in found]
