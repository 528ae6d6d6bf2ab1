"""Compiling everything on an empty cache: the pass and 45 dummy detectors, against importing numba."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.dummies import specs
from benchmarks.measure import Figure, over, significant, times
from benchmarks.processes import cpu_times
from benchmarks.workload import pack_text, rules, turns

PROGRAM = """
import tempfile
from pathlib import Path
from benchmarks.dummies import module
from stabilitykit.compiled.run import run_pass
from stabilitykit.compiled.header import ARGUMENTS
from stabilitykit.kernels.warmup import warm_up
with tempfile.TemporaryDirectory() as folder:
    made = module(Path(folder), {count})
    kernels = [getattr(made, f"dummy_{{k}}") for k in range({count})]
    assert warm_up(run_pass, ARGUMENTS, kernels) is not None
"""
READY = PROGRAM.rsplit("    assert", 1)[0]


def cold(count: int, rounds: int = 3, compiler: str = "") -> list[float]:
    """CPU seconds of: everything but compiling, compiling, the same from the cache."""
    found = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            place = {"STABILITYKIT_CACHE_DIR": folder, "STABILITYKIT_COMPILER": compiler}
            found.append(
                cpu_times([(READY.format(count=count), place), *[(PROGRAM.format(count=count), place)] * 2], 1)
            )
    return [sorted(column)[rounds // 2] for column in zip(*found, strict=True)]


def unused() -> float:
    """The same pack with and without 45 more detectors that exist: time of a turn."""
    from stabilitykit import Turn
    from stabilitykit.compiled.program import build_program
    from stabilitykit.detectors import DETECTORS
    from stabilitykit.engine import Engine
    from stabilitykit.rules.load import load_pack

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pack.yaml"
        path.write_text(pack_text(rules()))
        more = {**DETECTORS, **specs(Path(folder), 45)}
        few, many = (Engine(build_program(load_pack(str(path), detectors=d))) for d in (DETECTORS, more))
    stock = [Turn(session_id=f"s{s}", **d) for s, d in turns(4000)]
    a, b = times([over(stock, few.evaluate), over(stock, many.evaluate)], 31)
    return b / a


def run() -> list[Figure]:
    numba, bare = cpu_times([("import numba", {}), ("", {})], 5)
    ready, compiled, cached = cold(45)
    one = cold(0, 1)
    alone = cold(0, 1, "numba")
    unit = numba - bare
    note = f"{compiled - ready:.2f} s (the pass {one[1] - one[0]:.2f} s) against {unit:.2f} s"
    return [
        Figure(
            "cold_compile",
            "pass + 45 detectors compiled / import numba",
            significant((compiled - ready) / unit),
            6,
            note,
        ),
        Figure(
            "cold_cached",
            "the same from the cache / import numba",
            significant((cached - ready) / unit),
            None,
            f"{cached - ready:.2f} s",
        ),
        Figure(
            "cold_numba",
            "the pass alone, compiled by numba / import numba",
            significant((alone[1] - alone[0]) / unit),
            None,
            f"{alone[1] - alone[0]:.2f} s",
        ),
        Figure("unused_detectors", "a turn with 45 more detectors in existence", significant(unused()), 1.02),
    ]
