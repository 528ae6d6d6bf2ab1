"""The first decision of a new process whose code lies in the cache, against importing numba."""

from __future__ import annotations

import tempfile

from benchmarks.measure import Figure, significant
from benchmarks.processes import cpu_times

FIRST = (
    "import sys\nfrom stabilitykit import Engine, Turn\nengine = Engine.load('chat')\nassert engine.is_compiled\n"
    "engine.evaluate(Turn(session_id='s', itl_ms=30.0))\nassert 'numba' not in sys.modules"
)


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        place = {"STABILITYKIT_CACHE_DIR": folder}
        cpu_times([(FIRST, place)], 1)
        bare, first, numba = cpu_times([("", {}), (FIRST, place), ("import numba", {})])
    note = f"{first:.2f} s against {numba:.2f} s, each with its interpreter ({bare:.2f} s)"
    return [
        Figure(
            "first_decision",
            "first decision, warm cache / import numba",
            significant((first - bare) / (numba - bare)),
            3.5,
            note,
        )
    ]
